"""Everything that stays the same over the steps of a training run: settings, models, questions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastrl.engines.reference.image_features import ImageFeatures
from fastrl.engines.reference.logprobs import Scorer, make_scorer
from fastrl.engines.reference.optimizer import PolicyOptimizer
from fastrl.engines.reference.policy import Policy, with_tower
from fastrl.engines.reference.settings import EngineSettings, TrainingSettings, VisionEngineSettings
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
    """Put a run together around a policy, which it will train; the reference is a copy of it as it is now.

    ValueError if the engine's settings are for the other kind of policy, with or without images.
    """
    policy = _seeing(policy, engine)
    images = None if policy.vision is None else policy.vision.features
    reference = None
    if method.objective.needs_reference:
        copied = copy.deepcopy(policy.model).requires_grad_(False)
        reference = make_scorer(copied, _reference_images(copied, images, engine))
    return TrainingRun(
        method=method,
        training=training,
        engine=engine,
        policy=policy,
        scorer=make_scorer(policy.model, images),
        reference=reference,
        optimizer=PolicyOptimizer(
            policy.model, training.learning_rate, training.betas, training.weight_decay
        ),
        questions=questions,
        reward=reward,
        seed=seed,
    )


def _seeing(policy: Policy, engine: EngineSettings) -> Policy:
    """The policy as the settings want its vision tower: frozen, or trained."""
    if isinstance(engine, VisionEngineSettings) != (policy.vision is not None):
        named = policy.model.name_or_path or type(policy.model).__name__
        if policy.vision is None:
            raise ValueError(
                f"{named} reads text alone, and engine=reference_vision is for policies that see; take an "
                "image-text policy, or engine=reference with a data set and benchmarks without images"
            )
        raise ValueError(
            f"{named} sees, and engine=reference is for policies that read text alone; choose "
            "engine=reference_vision"
        )
    if not isinstance(engine, VisionEngineSettings):
        return policy
    return with_tower(policy, frozen=engine.freeze_vision_tower, cache_bytes=engine.image_cache_mb << 20)


def _reference_images(
    model: Any, trained: ImageFeatures | None, engine: EngineSettings
) -> ImageFeatures | None:
    """The reference's features: those of the policy too while its tower is frozen."""
    if trained is None or trained.constant:
        return trained
    assert isinstance(engine, VisionEngineSettings)
    return ImageFeatures(model, constant=True, cache_bytes=engine.image_cache_mb << 20)
