"""EasyR1's reward file, for every reward of this package.

worker.reward.reward_function=<this file>:compute_score, with a data set's whole `reward` section in
worker.reward.reward_function_kwargs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eval.rewards import build_reward
from fastrl.rollouts import Question

REWARD_NAME = "fastrl"
REWARD_TYPE = "batch"


def compute_score(reward_inputs: Sequence[Mapping[str, Any]], **reward: Any) -> list[dict[str, float]]:
    """One score per input, with the keys that EasyR1 logs: `overall` trains the policy.

    reward_inputs: mappings with `response` and `ground_truth`, as EasyR1's batch reward manager makes them;
    other keys are left alone. reward: as `eval.rewards.build_reward` takes it. Raises ValueError naming the
    input whose `ground_truth` is no text.
    """
    for number, given in enumerate(reward_inputs):
        if not isinstance(given["ground_truth"], str):
            raise ValueError(
                f"reward input {number}: ground_truth is {given['ground_truth']!r}, not a text; "
                "write the data set's answers as texts (`fastrl data prepare` does)"
            )
    questions = [
        Question(id=f"reward input {number}", prompt="", answer=given["ground_truth"])
        for number, given in enumerate(reward_inputs)
    ]
    rewards = build_reward(reward)(questions, [given["response"] for given in reward_inputs])
    return [{"overall": one.total, "format": one.format, "accuracy": one.accuracy} for one in rewards]
