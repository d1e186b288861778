"""The shape of rewards; the functions themselves come from outside (see `eval.rewards`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fastrl.rollouts import Question


@dataclass(frozen=True)
class Reward:
    """The reward of one trajectory: `total` trains the policy; `accuracy` and `format` are in [0, 1]."""

    total: float
    accuracy: float
    format: float


class RewardFunction(Protocol):
    def __call__(self, questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        """One reward per (question, response) pair, in order; both sequences have the same length."""
        ...
