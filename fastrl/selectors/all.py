"""No pruning: every trajectory trains the policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class KeepAll:
    """Keeps the whole batch."""

    def problem_with(self, n: int) -> str | None:
        return None

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        n = rollouts.n_trajectories
        return Selection(kept=np.arange(n), priority=np.abs(advantages), reason=("",) * n)
