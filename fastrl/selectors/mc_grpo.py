"""MC-GRPO: the group's median as the baseline, from one trajectory more, which itself is not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from fastrl.groups import check_finite
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class McGrpo:
    """Median-centred GRPO (arXiv 2601.22582): A = (r - median) / (scale + epsilon) of the reward's group.

    In an odd group one trajectory is the median: its advantage is 0, and it is left out, so that n + 1
    sampled trajectories train n. Ties at the median: the lowest index is left out. A group that lost
    trajectories and is even takes the lower of its two middle rewards, so that the median is again a
    trajectory; a group of one keeps it.

    scale: "mad", the median of |r - median|, as in the authors' code; "std", the sample standard deviation
        about the mean; "none" (1). With right-or-wrong rewards the MAD of an odd group is always 0, and the
        advantages are (r - median) / epsilon: hundreds of times GRPO's, bounded by the gradient clip alone.
    epsilon: added to "mad" and "std"; the authors' code has 1e-3 for "mad".
    """

    scale: Literal["mad", "std", "none"]
    epsilon: float

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(
                f"epsilon={self.epsilon}; it keeps a scale of 0 from dividing, so it must be above 0"
            )

    def problem_with(self, n: int) -> str | None:
        if n % 2:
            return None
        return (
            f"the median of {n} is no trajectory's reward; sample an odd number, one more than is trained on"
        )

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        check_finite(rollouts.rewards, rollouts.offsets, "rewards", rollouts.question_ids)
        rewards = np.asarray(rollouts.rewards, dtype=np.float64)
        centred = np.zeros(len(rewards))
        inside = np.ones(len(rewards), dtype=bool)
        for start, stop in pairwise(rollouts.offsets.tolist()):
            group = rewards[start:stop]
            median = _lower_median(group)
            centred[start:stop] = (group - median) / self._scale(group, median)
            inside[start + int(np.argmax(group == median))] = stop - start == 1
        kept = np.flatnonzero(inside)
        return Selection(
            kept,
            np.abs(advantages),
            tuple(np.where(inside, "", "median").tolist()),
            advantage_override=centred[kept],
        )

    def _scale(self, rewards: np.ndarray, median: float) -> float:
        if self.scale == "none":
            return 1.0
        if self.scale == "mad":
            return _lower_median(np.abs(rewards - median)) + self.epsilon
        return (float(np.std(rewards, ddof=1)) if len(rewards) > 1 else 0.0) + self.epsilon


def _lower_median(values: np.ndarray) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])
