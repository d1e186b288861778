"""GFPO: sample more, train on the most concise; of each group the shortest, or the most reward per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastrl.advantages import subset_advantages
from fastrl.groups import check_finite, group_index, rank_within
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class Gfpo:
    """Group filtered policy optimization (arXiv 2508.09726): the `keep` trajectories of a group that are best
    by a metric, whatever their reward; mean and deviation of the advantages are those of the kept.

    keep: at least 1; a group that lost trajectories keeps what it has, up to this number.
    metric: "length" keeps the shortest in response tokens; "token_efficiency" those of largest reward per
        token, an empty response counting as one token. Ties: lowest index.
    std_normalise, epsilon: the advantages of the kept, see `fastrl.advantages.group_advantages`; as the
        objective has them, because a selector does not see the objective.

    The paper's adaptive number of kept trajectories by difficulty is not offered.
    """

    keep: int
    metric: Literal["length", "token_efficiency"]
    std_normalise: bool
    epsilon: float

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"keep={self.keep}; at least 1 trajectory of a group must be kept")
        if self.epsilon < 0:
            raise ValueError(f"epsilon={self.epsilon}; it is added to a deviation, so it must be at least 0")

    def problem_with(self, n: int) -> str | None:
        return None if self.keep <= n else f"keep={self.keep} of {n}; choose 1 to {n}, or sample more"

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        check_finite(rollouts.rewards, rollouts.offsets, "rewards", rollouts.question_ids)
        rewards = np.asarray(rollouts.rewards, dtype=np.float64)
        lengths = np.asarray(rollouts.lengths, dtype=np.float64)
        merit = -lengths if self.metric == "length" else rewards / np.maximum(lengths, 1)
        inside = rank_within(group_index(rollouts.offsets), -merit) < self.keep
        kept = np.flatnonzero(inside)
        return Selection(
            kept,
            merit,
            tuple(np.where(inside, "", self.metric).tolist()),
            advantage_override=subset_advantages(
                rewards, rollouts.offsets, kept, self.std_normalise, self.epsilon
            ),
        )
