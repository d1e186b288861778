"""Pruning on advantages alone: FastRL's ablation without the token comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastrl.advantages import advantage_classes
from fastrl.groups import group_index, rank_within
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class AdvantageOnly:
    """Keeps one trajectory of each class of equal advantage in a group, drawn at random.

    epsilon: advantages closer than this are equal.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(
                f"epsilon={self.epsilon}; advantages closer than it are equal, so it must be above 0"
            )

    def problem_with(self, n: int) -> str | None:
        return None

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        classes = advantage_classes(advantages, rollouts.offsets, self.epsilon)
        label = group_index(rollouts.offsets) * len(classes) + classes
        kept = rank_within(label, rng.random(len(classes))) == 0
        reason = tuple(np.where(kept, "", "same_advantage").tolist())
        return Selection(np.flatnonzero(kept), np.abs(advantages), reason)
