"""ARS, FastRL's adaptive rollout sampling: fewer rollouts once pruning keeps fewer of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastrl.rollouts import IntArray
from fastrl.schedules.base import State


@dataclass(frozen=True)
class Ars:
    """FastRL section 3 (ARS).

    Every step adds the mean and the maximum over groups of the kept counts to the epoch's buffer. At the end
    of an epoch, with m and M the buffer's averages of the two and a = `progress`: f3 = a*m + (1 - a)*M, and
    g1 = (m + M) / 2 of the first epoch; the next epoch samples round(n - max(0, g1 - f3)) rollouts per
    question, within [n_min, n].

    n: rollouts of the first epoch, and the upper bound. n_min: lower bound, at least 2 (the sample standard
    deviation needs two). compat: "ours" closes the buffer at the epoch's last step and rounds half up.
    "authors" follows the authors' code: the first step of the new epoch still has the old number and counts
    in the closed buffer, and halves are rounded to even.
    """

    n: int
    n_min: int
    compat: Literal["ours", "authors"]

    def __post_init__(self) -> None:
        if not 2 <= self.n_min <= self.n:
            raise ValueError(f"n_min={self.n_min} and n={self.n}; 2 <= n_min <= n is needed")

    def possible_n(self) -> Sequence[int]:
        return range(self.n_min, self.n + 1)

    def initial_state(self) -> State:
        return {
            "version": 1,
            "n": self.n,
            "steps": 0,
            "sum_mean": 0.0,
            "sum_max": 0.0,
            "g1": None,
            "closing_progress": None,
        }

    def next_n(self, state: State) -> int:
        return int(state["n"])

    def observe(self, state: State, kept_per_group: IntArray) -> State:
        if not len(kept_per_group):
            return state
        state = {
            **state,
            "steps": state["steps"] + 1,
            "sum_mean": state["sum_mean"] + float(np.mean(kept_per_group)),
            "sum_max": state["sum_max"] + float(np.max(kept_per_group)),
        }
        if state["closing_progress"] is not None:
            return self._close(state, state["closing_progress"])
        return state

    def end_epoch(self, state: State, progress: float) -> State:
        if self.compat == "authors":
            return {**state, "closing_progress": progress}
        return self._close(state, progress)

    def _close(self, state: State, progress: float) -> State:
        """Set n from the buffer and empty it; an epoch without steps changes nothing."""
        if not state["steps"]:
            return state
        mean, maximum = state["sum_mean"] / state["steps"], state["sum_max"] / state["steps"]
        g1 = (mean + maximum) / 2 if state["g1"] is None else state["g1"]
        f3 = progress * mean + (1 - progress) * maximum
        target = self.n - max(0.0, g1 - f3)
        rounded = round(target) if self.compat == "authors" else math.floor(target + 0.5)
        return {**self.initial_state(), "n": min(max(rounded, self.n_min), self.n), "g1": g1}
