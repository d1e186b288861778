"""The same number of rollouts per question in every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastrl.rollouts import IntArray
from fastrl.schedules.base import State


@dataclass(frozen=True)
class Fixed:
    """`n` rollouts per question, at least 1."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n={self.n} rollouts per question; at least 1 is needed")

    def possible_n(self) -> Sequence[int]:
        return (self.n,)

    def initial_state(self) -> State:
        return {"version": 1}

    def next_n(self, state: State) -> int:
        return self.n

    def observe(self, state: State, kept_per_group: IntArray) -> State:
        return state

    def end_epoch(self, state: State, progress: float) -> State:
        return state
