"""GFPO: sample more, train on the most concise; of each group the shortest, or the most reward per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastrl.advantages import subset_advantages
from fastrl.groups import check_finite, group_index, rank_within
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection
from fastrl.selectors.kept_subset import KeptSubset


@dataclass(frozen=True)
class Gfpo(KeptSubset):
    """Group filtered policy optimization (arXiv 2508.09726): the `keep` trajectories of a group that are best
    by a metric, whatever their reward; mean and deviation of the advantages are those of the kept.

    metric: "length" keeps the shortest in response tokens; "token_efficiency" those of largest reward per
        token, an empty response counting as one token. Ties: lowest index.

    The paper's adaptive number of kept trajectories by difficulty is not offered.
    """

    metric: Literal["length", "token_efficiency"]

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
