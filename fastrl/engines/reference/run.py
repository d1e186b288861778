"""Everything that stays the same over the steps of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastrl.engines.reference.logprobs import Scorer
from fastrl.engines.reference.optimizer import PolicyOptimizer
from fastrl.engines.reference.policy import Policy
from fastrl.engines.reference.settings import EngineSettings, TrainingSettings
from fastrl.method import Method
from fastrl.rewards import RewardFunction
from fastrl.rollouts import Question


@dataclass(frozen=True)
class TrainingRun:
    """policy: sampled from, and trained through `optimizer`; scorer: the same model's log-probs. reference:
    those of the policy before training, None when the objective has no KL term."""

    method: Method
    training: TrainingSettings
    engine: EngineSettings
    policy: Policy
    scorer: Scorer
    reference: Scorer | None
    optimizer: PolicyOptimizer
    questions: Sequence[Question]
    reward: RewardFunction
    seed: int
