"""What a rollout schedule is: it decides how many trajectories to sample per question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fastrl.rollouts import IntArray

State = dict[str, Any]
"""Explicit, JSON-able state with a "version" key; it goes into checkpoints as it is."""


class RolloutSchedule(Protocol):
    """A frozen dataclass of settings; state goes in and out. Registered in `fastrl.schedules.SCHEDULES`."""

    def possible_n(self) -> Sequence[int]:
        """Every number that `next_n` may return, ascending; used to check a method before it runs."""
        ...

    def initial_state(self) -> State: ...

    def next_n(self, state: State) -> int:
        """Rollouts per question for the next step (the same for every question of a step)."""
        ...

    def observe(self, state: State, kept_per_group: IntArray) -> State:
        """Take in one step's kept counts per group (Q,), after alignment; returns the new state."""
        ...

    def end_epoch(self, state: State, progress: float) -> State:
        """Called after the last step of an epoch; `progress` = steps done / all steps, in (0, 1]."""
        ...
