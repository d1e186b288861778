"""DAPO's dynamic sampling: only groups with both right and wrong answers count, and draws refill the step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastrl.advantages import zero_variance
from fastrl.groups import check_finite
from fastrl.rollouts import BoolArray, Rollouts
from fastrl.schedules.base import State


@dataclass(frozen=True)
class DynamicSampling:
    """DAPO (arXiv 2503.14476, section 3.2). Judged on accuracy: a format bonus would let groups through whose
    answers are all right or all wrong, and refuse mixed ones.

    max_draws: draws per step, at least 1 (EasyR1's `max_try_make_batch`).
    oversample: at least 1; a draw is this many times the groups that are still missing.
    """

    max_draws: int
    oversample: float

    def __post_init__(self) -> None:
        if self.max_draws < 1:
            raise ValueError(f"max_draws={self.max_draws}; at least 1 is needed")
        if not 1 <= self.oversample < math.inf:
            raise ValueError(f"oversample={self.oversample}; a factor of at least 1 is needed")

    def initial_state(self) -> State:
        return {"version": 1}

    def next_draw(self, state: State, missing: int) -> int:
        return math.ceil(missing * self.oversample)

    def plan(
        self, state: State, question_ids: Sequence[str], epoch: int, rng: np.random.Generator
    ) -> BoolArray:
        return np.ones(len(question_ids), dtype=bool)

    def accept(self, rollouts: Rollouts, accuracy: np.ndarray) -> BoolArray:
        check_finite(accuracy, rollouts.offsets, "accuracies", rollouts.question_ids)
        return ~zero_variance(accuracy, rollouts.offsets)

    def observe(self, state: State, rollouts: Rollouts, accuracy: np.ndarray, epoch: int) -> State:
        return state

    def end_step(self, state: State, epoch: int) -> State:
        return state
