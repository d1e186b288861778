"""What a prompt filter is: it decides which questions are sampled, and which sampled groups count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fastrl.rollouts import BoolArray, Rollouts
from fastrl.schedules.base import State


class PromptFilter(Protocol):
    """A frozen dataclass of settings; state goes in and out. Registered in `fastrl.filters.FILTERS`.

    A step needs `questions_per_step` groups. The engine draws `next_draw` questions, leaves out those that
    `plan` skips, samples the rest, drops the groups that `accept` refuses, and draws again until the step is
    full or `max_draws` is reached.
    """

    @property
    def max_draws(self) -> int:
        """Draws per step, at least 1; 1 means: never refill."""
        ...

    def initial_state(self) -> State: ...

    def next_draw(self, state: State, missing: int) -> int:
        """How many questions to draw next when `missing` groups are still wanted (>= 1)."""
        ...

    def plan(
        self, state: State, question_ids: Sequence[str], epoch: int, rng: np.random.Generator
    ) -> BoolArray:
        """(Q,) True where a drawn question is to be sampled, False where this visit is skipped."""
        ...

    def accept(self, rollouts: Rollouts, accuracy: np.ndarray) -> BoolArray:
        """(Q,) True where a sampled group counts for the step.

        accuracy: (N,) in [0, 1], without format bonus.
        """
        ...

    def observe(self, state: State, rollouts: Rollouts, accuracy: np.ndarray, epoch: int) -> State:
        """Take in every sampled group of one draw, accepted or not; returns the new state."""
        ...

    def end_step(self, state: State, epoch: int) -> State:
        """Called once a training step, after its last draw; returns the new state."""
        ...
