"""Random pruning, the control for every selector that keeps as many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastrl.groups import group_index, rank_within
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class RandomFraction:
    """Keeps n (1 - pruning_rate) of the n trajectories of a group, drawn at random.

    pruning_rate: in [0, 1). The number kept is rounded half up and at least 1, so group sizes may vary.
    Back-filling follows the same random order, so the aligned selection is random, too.
    """

    pruning_rate: float

    def __post_init__(self) -> None:
        if not 0 <= self.pruning_rate < 1:
            raise ValueError(f"pruning_rate={self.pruning_rate}; a share in [0, 1) is needed")

    def problem_with(self, n: int) -> str | None:
        return None

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        priority = rng.random(rollouts.n_trajectories)
        group = group_index(rollouts.offsets)
        wanted = rollouts.group_sizes * (1 - self.pruning_rate)
        # The small number undoes rounding in 1 - pruning_rate: 10 * (1 - 0.95) is 0.5, to be rounded up.
        number = np.maximum(np.floor(wanted + 0.5 + 1e-6), 1)
        kept = rank_within(group, -priority) < number[group]
        return Selection(np.flatnonzero(kept), priority, tuple(np.where(kept, "", "random").tolist()))
