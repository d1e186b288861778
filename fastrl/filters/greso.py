"""GRESO: skip questions whose last groups were all right or all wrong, more surely the more of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastrl.advantages import zero_variance
from fastrl.groups import check_finite, starts_and_sizes
from fastrl.rollouts import BoolArray, Rollouts
from fastrl.schedules.base import State


@dataclass(frozen=True)
class GresoRule:
    """GRESO (arXiv 2506.02177) as in its official code, but for any group size; how much is drawn is left to
    `Greso` and `GresoAbsolute`.

    A question whose last z groups were all easy (all right), or all hard (all wrong), is skipped with
    probability 1 - max(p^z, min_keep), p being p_easy or p_hard. z = 0 or a new question is never skipped; a
    skipped visit leaves z as it is. After each training step from the second epoch on, p_easy and p_hard
    change by `p_step`: down where the share of easy (hard) groups sampled in the step reached its target,
    else up. Sampled groups of one accuracy are refused, and the step is refilled.

    p_easy, p_hard: first values, within [p_min, p_max]. p_step, p_min, p_max: see above.
    min_keep: every question keeps at least this probability of being sampled.
    easy_at_least, hard_at_most: a group is easy if all its accuracies are at least the one, hard if all are
        at most the other. (The official code compares the mean of 8 rewards, which misjudges larger groups.)
    target_easy, target_hard: shares of the sampled groups.
    max_draws: draws per step, at least 1.
    refill_margin: a refill is missing / (1 - z) times this, z being the share of groups of one accuracy in
        the last draw.
    """

    p_easy: float
    p_hard: float
    p_step: float
    p_min: float
    p_max: float
    min_keep: float
    easy_at_least: float
    hard_at_most: float
    target_easy: float
    target_hard: float
    max_draws: int
    refill_margin: float

    def __post_init__(self) -> None:
        if (
            not 0
            <= self.p_min
            <= min(self.p_easy, self.p_hard)
            <= max(self.p_easy, self.p_hard)
            <= self.p_max
            <= 1
        ):
            raise ValueError(
                f"p_easy={self.p_easy} and p_hard={self.p_hard} must lie in [p_min, p_max] = "
                f"[{self.p_min}, {self.p_max}], and this in [0, 1]"
            )
        if self.p_step < 0 or not 0 <= self.min_keep <= 1:
            raise ValueError(
                f"p_step={self.p_step} must not be negative, min_keep={self.min_keep} be in [0, 1]"
            )
        if not self.hard_at_most < self.easy_at_least:
            raise ValueError(
                f"hard_at_most={self.hard_at_most} must be below easy_at_least={self.easy_at_least}"
            )
        if self.max_draws < 1:
            raise ValueError(f"max_draws={self.max_draws}; at least 1 is needed")
        if self.refill_margin < 1:
            raise ValueError(
                f"refill_margin={self.refill_margin} multiplies the missing groups; at least 1 is needed"
            )

    def initial_state(self) -> State:
        """`runs` holds each seen question's z, positive for easy and negative for hard groups; the counts are
        the step's, and `constant` is the share of groups of one accuracy in its last draw."""
        return {
            "version": 1,
            "p_easy": self.p_easy,
            "p_hard": self.p_hard,
            "runs": {},
            "sampled": 0,
            "easy": 0,
            "hard": 0,
            "constant": None,
        }

    def skip_probability(self, state: State, question_ids: Sequence[str]) -> NDArray[np.float64]:
        """(Q,) the probability that a visit of each question is skipped."""
        runs = np.array([state["runs"].get(question, 0) for question in question_ids], dtype=np.int64)
        p = np.where(runs > 0, state["p_easy"], state["p_hard"])
        return np.where(runs == 0, 0.0, 1.0 - np.maximum(p ** np.abs(runs), self.min_keep))

    def plan(
        self, state: State, question_ids: Sequence[str], epoch: int, rng: np.random.Generator
    ) -> BoolArray:
        return np.asarray(rng.random(len(question_ids)) >= self.skip_probability(state, question_ids))

    def accept(self, rollouts: Rollouts, accuracy: np.ndarray) -> BoolArray:
        check_finite(accuracy, rollouts.offsets, "accuracies", rollouts.question_ids)
        return ~zero_variance(accuracy, rollouts.offsets)

    def observe(self, state: State, rollouts: Rollouts, accuracy: np.ndarray, epoch: int) -> State:
        if not rollouts.n_groups:
            return state
        check_finite(accuracy, rollouts.offsets, "accuracies", rollouts.question_ids)
        starts, _ = starts_and_sizes(rollouts.offsets)
        easy = np.minimum.reduceat(accuracy, starts) >= self.easy_at_least
        hard = np.maximum.reduceat(accuracy, starts) <= self.hard_at_most
        runs = dict(state["runs"])
        for question, right, wrong in zip(rollouts.question_ids, easy.tolist(), hard.tolist(), strict=True):
            run = runs.get(question, 0)
            runs[question] = max(run, 0) + 1 if right else min(run, 0) - 1 if wrong else 0
        return {
            **state,
            "runs": runs,
            "sampled": state["sampled"] + rollouts.n_groups,
            "easy": state["easy"] + int(easy.sum()),
            "hard": state["hard"] + int(hard.sum()),
            "constant": float(zero_variance(accuracy, rollouts.offsets).mean()),
        }

    def end_step(self, state: State, epoch: int) -> State:
        p_easy, p_hard = state["p_easy"], state["p_hard"]
        if epoch > 0 and state["sampled"]:
            p_easy = self._adapted(p_easy, state["easy"] / state["sampled"] >= self.target_easy)
            p_hard = self._adapted(p_hard, state["hard"] / state["sampled"] >= self.target_hard)
        return {**self.initial_state(), "p_easy": p_easy, "p_hard": p_hard, "runs": state["runs"]}

    def _estimate(self, state: State, missing: int) -> float:
        """Questions to draw so that `missing` of them are likely to count; infinite if none did last time."""
        mixed = 1.0 - state["constant"]
        return missing * (self.refill_margin / mixed) if mixed > 0 else math.inf

    def _adapted(self, p: float, too_many: bool) -> float:
        return max(p - self.p_step, self.p_min) if too_many else min(p + self.p_step, self.p_max)


@dataclass(frozen=True)
class Greso(GresoRule):
    """`GresoRule` with draws in proportion to the step.

    first_draw: a step's first draw, as a multiple of the groups wanted. max_refill: a refill is at most this
    many times the missing groups, also when all groups of the last draw were of one accuracy.
    """

    first_draw: float
    max_refill: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.first_draw, self.max_refill) < 1:
            raise ValueError(
                f"first_draw={self.first_draw} and max_refill={self.max_refill} multiply the groups that are "
                "missing; each must be at least 1"
            )

    def next_draw(self, state: State, missing: int) -> int:
        if state["constant"] is None:
            return math.ceil(missing * self.first_draw)
        return math.ceil(min(self._estimate(state, missing), missing * self.max_refill))
