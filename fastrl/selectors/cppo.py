"""CPPO: keep the trajectories of largest absolute advantage, the same number in every group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastrl.advantages import advantage_classes
from fastrl.groups import group_index, rank_within
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class Cppo:
    """Completion pruning (arXiv 2503.22342): k = n (1 - pruning_rate) of the n trajectories of a group.

    pruning_rate: in [0, 1).
    epsilon: absolute advantages closer than this are tied. Among tied ones the signs take turns, the positive
        first, each in index order: a plain top-k of four right and four wrong would keep one sign only.
    scope: "question" keeps the k largest of each group, as the paper has it. With the method's numbers of
        rollouts k must be whole and at least 1 (see `problem_with`), so that each data-parallel rank gets the
        same number; a group that lost trajectories keeps the whole part of k, and at least 1. "batch" keeps
        as large a part of all trajectories of the step, as the authors' verl code does; groups may then end
        up with none.
    allocation: fills the places of the pruned with further questions: a step samples B / (1 - pruning_rate)
        questions (rounded down) instead of B, so about as many trajectories are trained on as without
        pruning, in as many updates, and a pass over the data takes fewer steps.
    """

    pruning_rate: float
    epsilon: float
    scope: Literal["question", "batch"]
    allocation: bool

    def __post_init__(self) -> None:
        if not 0 <= self.pruning_rate < 1:
            raise ValueError(f"pruning_rate={self.pruning_rate}; a share in [0, 1) is needed")
        if not self.epsilon > 0:
            raise ValueError(
                f"epsilon={self.epsilon}; advantages closer than it are tied, so it must be above 0"
            )

    def problem_with(self, n: int) -> str | None:
        k = n * (1 - self.pruning_rate)
        if self.scope == "batch" or (round(k) >= 1 and abs(k - round(k)) < 1e-6):
            return None
        rates = ", ".join(f"{1 - whole / n:.9g}" for whole in range(n, 0, -1))
        return (
            f"pruning_rate={self.pruning_rate} would keep {k:g} of {n} trajectories, not a whole number of "
            f"at least 1; possible rates: {rates}"
        )

    def planned_questions(self, questions: int) -> int:
        return math.floor(questions / (1 - self.pruning_rate) + 1e-6) if self.allocation else questions

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        n = rollouts.n_trajectories
        edges = rollouts.offsets if self.scope == "question" or n == 0 else np.array([0, n])
        group = group_index(edges)
        size = np.abs(advantages)
        tie = advantage_classes(size, edges, self.epsilon)
        negative = (np.asarray(advantages) < 0).astype(np.int64)
        turn = rank_within((group * len(tie) + tie) * 2 + negative)
        place = rank_within(group, -tie, turn, negative)
        # The small number undoes rounding in 1 - pruning_rate: 10 * (1 - 0.9) is just below 1.
        number = np.maximum(np.floor(np.diff(edges) * (1 - self.pruning_rate) + 1e-6), 1)
        kept = place < number[group]
        return Selection(np.flatnonzero(kept), size, tuple(np.where(kept, "", "low_advantage").tolist()))
