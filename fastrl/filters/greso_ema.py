"""GRESO as FastRL's authors have it: skip a bounded share of questions, by a moving average of accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastrl.groups import check_finite, starts_and_sizes
from fastrl.rollouts import BoolArray, Rollouts
from fastrl.schedules.base import State


@dataclass(frozen=True)
class GresoEma:
    """For comparison with `Greso`: the published FastRL code declares a filter by a moving average with
    coefficient 0.5 that skips at most 20 % of the questions; what it does not show is completed here.

    A question's average starts at its first group's mean accuracy and then follows
    beta * average + (1 - beta) * mean. Of a draw's questions whose average is at most `margin` away from 0 or
    1, the closest are skipped (ties: the earlier drawn), at most `max_skipped` of the draw. A question that
    was not sampled in the epoch before is not skipped, so that none is out for two epochs in a row.

    beta: in [0, 1). margin: in [0, 0.5). max_skipped: share of a draw, in [0, 1).
    max_draws: draws per step, at least 1; later draws replace the skipped questions.
    """

    beta: float
    margin: float
    max_skipped: float
    max_draws: int

    def __post_init__(self) -> None:
        if not (0 <= self.beta < 1 and 0 <= self.margin < 0.5 and 0 <= self.max_skipped < 1):
            raise ValueError(
                f"beta={self.beta} and max_skipped={self.max_skipped} must be in [0, 1), "
                f"margin={self.margin} in [0, 0.5)"
            )
        if self.max_draws < 1:
            raise ValueError(f"max_draws={self.max_draws}; at least 1 is needed")

    def initial_state(self) -> State:
        """`seen`: for each sampled question its average and the epoch of its last group."""
        return {"version": 1, "seen": {}}

    def next_draw(self, state: State, missing: int) -> int:
        return missing

    def plan(
        self, state: State, question_ids: Sequence[str], epoch: int, rng: np.random.Generator
    ) -> BoolArray:
        average, last = (
            np.array(
                [state["seen"].get(question, (0.5, epoch)) for question in question_ids], dtype=np.float64
            )
            .reshape(-1, 2)
            .T
        )
        distance = np.minimum(average, 1.0 - average)
        candidates = np.flatnonzero((distance <= self.margin) & (last >= epoch - 1))
        most = math.floor(self.max_skipped * len(question_ids) + 1e-9)
        sampled = np.ones(len(question_ids), dtype=bool)
        sampled[candidates[np.argsort(distance[candidates], kind="stable")[:most]]] = False
        return sampled

    def accept(self, rollouts: Rollouts, accuracy: np.ndarray) -> BoolArray:
        return np.ones(rollouts.n_groups, dtype=bool)

    def observe(self, state: State, rollouts: Rollouts, accuracy: np.ndarray, epoch: int) -> State:
        if not rollouts.n_groups:
            return state
        check_finite(accuracy, rollouts.offsets, "accuracies", rollouts.question_ids)
        starts, sizes = starts_and_sizes(rollouts.offsets)
        means = np.add.reduceat(np.asarray(accuracy, dtype=np.float64), starts) / sizes
        seen = dict(state["seen"])
        for question, mean in zip(rollouts.question_ids, means.tolist(), strict=True):
            average = seen[question][0] if question in seen else mean
            seen[question] = [self.beta * average + (1 - self.beta) * mean, epoch]
        return {**state, "seen": seen}

    def end_step(self, state: State, epoch: int) -> State:
        return state
