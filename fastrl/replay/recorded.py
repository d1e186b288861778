"""Recorded training steps, and smaller groups made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastrl.groups import group_index, rank_within
from fastrl.rollouts import FloatArray, Rollouts

Subsample = Literal["first", "random"]
"""How a recorded group stands for a smaller one: its first trajectories, or a seeded choice of them.

Rollouts of a question are independent draws from one policy, so both are fair; "first" gives the same
trajectories to every method, "random" shows by its seeds how much the choice matters.
"""


@dataclass(frozen=True)
class RecordedStep:
    """The trajectories of one training step. step: its number. epoch: from 0, the one that the step began in.
    accuracy: (N,), NaN where it is not recorded."""

    step: int
    epoch: int
    rollouts: Rollouts
    accuracy: FloatArray


@dataclass(frozen=True)
class Course:
    """progress[e]: the share of all training steps that are done when epoch e ends, in (0, 1], ascending."""

    progress: tuple[float, ...]

    def __post_init__(self) -> None:
        inside = all(0 < share <= 1 for share in self.progress)
        if not inside or list(self.progress) != sorted(set(self.progress)):
            raise ValueError(f"progress={list(self.progress)}; ascending shares in (0, 1] are needed")


def subsample(rollouts: Rollouts, n: int, how: Subsample, rng: np.random.Generator) -> Rollouts:
    """At most n trajectories of each group, in their recorded order; smaller groups stay as they are.

    ValueError for n < 1.
    """
    if n < 1:
        raise ValueError(f"n={n} trajectories per group; at least 1 is needed")
    rollouts = rollouts.packed()
    if n >= int(rollouts.group_sizes.max(initial=0)):
        return rollouts
    group = group_index(rollouts.offsets)
    order = np.arange(len(group)) if how == "first" else rng.random(len(group))
    chosen = rank_within(group, order) < n
    return Rollouts(
        question_ids=rollouts.question_ids,
        offsets=np.concatenate([[0], np.cumsum(np.bincount(group[chosen], minlength=rollouts.n_groups))]),
        tokens=rollouts.tokens[np.repeat(chosen, rollouts.lengths)],
        token_offsets=np.concatenate([[0], np.cumsum(rollouts.lengths[chosen])]),
        rewards=rollouts.rewards[chosen],
    )
