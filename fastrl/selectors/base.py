"""What a selector is: it decides which trajectories of the batch train the policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from fastrl.rollouts import FloatArray, IntArray, Rollouts


@dataclass(frozen=True)
class Selection:
    """The outcome of a selector for one batch of N trajectories.

    kept: (K,) int64, ascending indices of the kept trajectories.
    priority: (N,) float; among the unselected of a question, alignment adds the highest first
        (ties: lowest index), and never one of -inf. Most selectors use |advantage|.
    reason: N short strings; "" for a kept trajectory, else why it was pruned ("jaccard", "low_advantage"
    ...). weight: (K,) float or None; factor on each kept trajectory's advantage. advantage_override: (K,)
    float or None; replaces the kept advantages (for selectors that recompute them).
    """

    kept: IntArray
    priority: FloatArray
    reason: tuple[str, ...]
    weight: FloatArray | None = None
    advantage_override: FloatArray | None = None


class Selector(Protocol):
    """A frozen dataclass of settings with pure functions. Registered in `fastrl.selectors.SELECTORS`."""

    def problem_with(self, n: int) -> str | None:
        """Why these settings cannot serve groups of n trajectories; None if they can."""
        ...

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        """Choose from the whole batch at once.

        advantages: (N,), those of the full group. `rng` is seeded by run and step: same seed, same choice.
        """
        ...


@runtime_checkable
class PlansQuestions(Protocol):
    """What a selector may offer besides: more questions for a step, so as to use the places it frees."""

    def planned_questions(self, questions: int) -> int:
        """Questions to sample in a step that without pruning has `questions`; at least as many."""
        ...
