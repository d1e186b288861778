"""PODS: keep the trajectories of a group whose rewards vary most, and compare them with each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fastrl.advantages import subset_advantages
from fastrl.groups import check_finite
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection
from fastrl.selectors.kept_subset import KeptSubset


@dataclass(frozen=True)
class Pods(KeptSubset):
    """Max-variance down-sampling (arXiv 2504.13818): of each group the `keep` trajectories whose rewards have
    the largest variance; their advantages are computed from their own rewards, as in the authors' code.

    The best subset is always a number of the lowest rewards and the rest of the highest (the paper's
    theorem), so after sorting all splits are tried with running sums: O(G log G) per group, exact. Ties:
    rewards are ordered by value, then index; of splits with equal variance the one with the most of the low
    end, which of right-or-wrong rewards keeps the lowest indices. The authors' code adds 1e-4 for epsilon.
    """

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        check_finite(rollouts.rewards, rollouts.offsets, "rewards", rollouts.question_ids)
        rewards = np.asarray(rollouts.rewards, dtype=np.float64)
        chosen = [
            start + most_varied(rewards[start:stop], self.keep)
            for start, stop in pairwise(rollouts.offsets.tolist())
        ]
        kept = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen]))
        inside = np.zeros(len(rewards), dtype=bool)
        inside[kept] = True
        return Selection(
            kept,
            np.abs(advantages),
            tuple(np.where(inside, "", "low_variance").tolist()),
            advantage_override=subset_advantages(
                rewards, rollouts.offsets, kept, self.std_normalise, self.epsilon
            ),
        )


def most_varied(rewards: NDArray[np.float64], keep: int) -> NDArray[np.int64]:
    """(min(keep, G),) the indices of the subset of largest variance of the rewards (G,) of one group."""
    order = np.argsort(rewards, kind="stable")
    size, keep = len(order), min(keep, len(order))
    # Centred, so that large rewards close together do not lose their variance to rounding.
    ordered = rewards[order] - rewards.mean()
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    squares = np.concatenate([[0.0], np.cumsum(ordered**2)])
    low = np.arange(keep + 1)  # this many of the lowest, and keep - low of the highest
    high = size - keep + low
    total = sums[low] + sums[size] - sums[high]
    spread = squares[low] + squares[size] - squares[high] - total**2 / keep
    best = int(np.flatnonzero(spread >= spread.max() - 1e-12 * squares[size])[-1])
    return np.concatenate([order[:best], order[size - keep + best :]])
