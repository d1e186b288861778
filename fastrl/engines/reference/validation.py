"""Accuracy of the policy on the validation questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastrl.engines.reference.collect import checked_rewards
from fastrl.engines.reference.policy import read_prompts
from fastrl.engines.reference.run import TrainingRun
from fastrl.engines.reference.sampler import decode, sample
from fastrl.engines.reference.seeds import torch_stream
from fastrl.rollouts import Question


def validation_accuracy(run: TrainingRun, questions: Sequence[Question], step: int) -> float:
    """Mean accuracy of `validation_samples` responses per question at the training temperature.

    RewardError if a reward is not finite.
    """
    training = run.training
    n = training.validation_samples
    sampled = sample(
        run.policy,
        read_prompts(run.policy, questions, training.max_prompt_tokens),
        n,
        max_tokens=training.max_response_tokens,
        temperature=training.temperature,
        batch=run.engine.sample_batch,
        generator=torch_stream(run.seed, "validation", step),
    )
    asked = [question for question in questions for _ in range(n)]
    rewards = checked_rewards(run.reward, asked, decode(run.policy.tokenizer, sampled), "error")
    return float(np.mean([reward.accuracy for reward in rewards]))
