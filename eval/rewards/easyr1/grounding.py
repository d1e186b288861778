"""EasyR1 reward file: overlap, centre hit and format of bounding boxes (os_atlas).

worker.reward.reward_function=<this file>:compute_score, with the fields of
`eval.rewards.grounding.Grounding` in worker.reward.reward_function_kwargs.
"""

from __future__ import annotations

from typing import Any

from eval.rewards.easyr1.scores import easyr1_scores
from eval.rewards.grounding import Grounding

REWARD_NAME = "grounding"
REWARD_TYPE = "batch"


def compute_score(
    reward_inputs: list[dict[str, Any]],
    response_format: str,
    iou_weight: float,
    centre_weight: float,
    format_weight: float,
) -> list[dict[str, float]]:
    """Scores {overall, format, accuracy} of inputs {response, response_length, ground_truth}, in order."""
    reward = Grounding(response_format, iou_weight, centre_weight, format_weight)
    return easyr1_scores(reward, reward_inputs)
