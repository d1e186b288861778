"""EasyR1 reward file: a benchmark's own verdict + weighted format (geometry3k, geoqa8k_r1v, math).

worker.reward.reward_function=<this file>:compute_score, with the fields of
`eval.rewards.benchmark_accuracy_format.BenchmarkAccuracyFormat` in worker.reward.reward_function_kwargs.
"""

from __future__ import annotations

from typing import Any

from eval.rewards.benchmark_accuracy_format import BenchmarkAccuracyFormat
from eval.rewards.easyr1.scores import easyr1_scores

REWARD_NAME = "benchmark_accuracy_format"
REWARD_TYPE = "batch"


def compute_score(
    reward_inputs: list[dict[str, Any]],
    benchmark: str,
    rule: str,
    response_format: str,
    format_weight: float,
) -> list[dict[str, float]]:
    """Scores {overall, format, accuracy} of inputs {response, response_length, ground_truth}, in order."""
    reward = BenchmarkAccuracyFormat(benchmark, rule, response_format, format_weight)
    return easyr1_scores(reward, reward_inputs)
