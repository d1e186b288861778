"""No filter: every drawn question is sampled, and every group counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastrl.rollouts import BoolArray, Rollouts
from fastrl.schedules.base import State


@dataclass(frozen=True)
class AllPrompts:
    """Samples what is drawn, in one draw."""

    @property
    def max_draws(self) -> int:
        return 1

    def initial_state(self) -> State:
        return {"version": 1}

    def next_draw(self, state: State, missing: int) -> int:
        return missing

    def plan(
        self, state: State, question_ids: Sequence[str], epoch: int, rng: np.random.Generator
    ) -> BoolArray:
        return np.ones(len(question_ids), dtype=bool)

    def accept(self, rollouts: Rollouts, accuracy: np.ndarray) -> BoolArray:
        return np.ones(rollouts.n_groups, dtype=bool)

    def observe(self, state: State, rollouts: Rollouts, accuracy: np.ndarray, epoch: int) -> State:
        return state

    def end_step(self, state: State, epoch: int) -> State:
        return state
