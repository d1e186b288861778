"""Everything that stays the same over the steps of a training run: settings, models, questions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from fastrl.engines.reference.logprobs import Scorer, make_scorer
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


def prepare_run(
    method: Method,
    training: TrainingSettings,
    engine: EngineSettings,
    policy: Policy,
    questions: Sequence[Question],
    reward: RewardFunction,
    seed: int,
) -> TrainingRun:
    """Put a run together around a policy, which it will train; the reference is a copy of it as it is now."""
    reference = None
    if method.objective.needs_reference:
        reference = make_scorer(copy.deepcopy(policy.model).requires_grad_(False))
    return TrainingRun(
        method=method,
        training=training,
        engine=engine,
        policy=policy,
        scorer=make_scorer(policy.model),
        reference=reference,
        optimizer=PolicyOptimizer(
            policy.model, training.learning_rate, training.betas, training.weight_decay
        ),
        questions=questions,
        reward=reward,
        seed=seed,
    )
