"""From EasyR1's reward inputs to its scores, through a reward of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastrl.rewards import RewardFunction
from fastrl.rollouts import Question


def easyr1_scores(
    reward: RewardFunction, reward_inputs: Sequence[Mapping[str, Any]]
) -> list[dict[str, float]]:
    """One score per input, with the keys that EasyR1 logs: `overall` trains the policy.

    reward_inputs: mappings with `response` and `ground_truth`, as EasyR1's batch reward manager makes them;
    other keys are left alone. Raises ValueError naming the input whose `ground_truth` is no text.
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
    rewards = reward(questions, [given["response"] for given in reward_inputs])
    return [{"overall": one.total, "format": one.format, "accuracy": one.accuracy} for one in rewards]
