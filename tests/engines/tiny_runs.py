"""Short training runs of a tiny policy, with every method part at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tiny_policies import letter_reward, tiny_questions
from torch import Tensor

from fastrl.engines.reference.loop import TrainOutcome, train
from fastrl.engines.reference.records import StepRecord
from fastrl.engines.reference.settings import EngineSettings, TrainingSettings
from fastrl.method import Method, build_method
from fastrl.rewards import RewardFunction
from fastrl.rollout_record import RolloutRecord
from fastrl.rollouts import Question

GRPO = {"name": "grpo", "clip_low": 0.2, "clip_high": 0.2, "kl_coef": 0.01, "epsilon": 1e-6}
ALL_PROMPTS = {"name": "all"}
DYNAMIC = {"name": "dynamic_sampling", "max_draws": 3, "oversample": 1.0}
GRESO = {
    "name": "greso",
    "p_easy": 0.5,
    "p_hard": 0.5,
    "p_step": 0.01,
    "p_min": 0.05,
    "p_max": 0.95,
    "min_keep": 0.01,
    "easy_at_least": 0.98,
    "hard_at_most": 0.11,
    "target_easy": 0.08,
    "target_hard": 0.17,
    "max_draws": 4,
    "first_draw": 1.0,
    "refill_margin": 1.25,
    "max_refill": 6.0,
}
FIXED = {"name": "fixed", "n": 6}
ARS = {"name": "ars", "n": 6, "n_min": 2, "compat": "ours"}
KEEP_ALL = {"name": "all"}
MDAP = {
    "name": "mdap",
    "tau": 0.8,
    "compare": "seed",
    "epsilon": 1e-4,
    "weight": "none",
    "drop_zero_variance": False,
    "kernel": "numpy",
}

TRAINING = TrainingSettings(
    epochs=3,
    questions_per_step=4,
    max_prompt_tokens=16,
    max_response_tokens=8,
    temperature=1.0,
    learning_rate=1e-2,
    betas=(0.9, 0.999),
    weight_decay=0.01,
    max_grad_norm=1.0,
    warmup_steps=0,
    updates=2,
    update_mode="fixed",
    validate_every=4,
    validation_samples=2,
    checkpoint_every=2,
    keep_checkpoints=2,
    record_rollouts_every=0,
    on_bad_reward="error",
)
ENGINE = EngineSettings(
    device="cpu",
    dtype="float32",
    threads=1,
    micro_batch=5,
    logprob_batch=16,
    sample_batch=64,
    data_parallel=1,
)


def method_of(
    objective: dict[str, Any] = GRPO,
    prompts: dict[str, Any] = ALL_PROMPTS,
    rollouts: dict[str, Any] = FIXED,
    selector: dict[str, Any] = KEEP_ALL,
    prune: str = "before_logprob",
) -> Method:
    return build_method(
        {
            "objective": objective,
            "prompts": prompts,
            "rollouts": rollouts,
            "selector": selector,
            "prune": prune,
        }
    )


@dataclass
class Recorder:
    """What a run reported."""

    records: list[StepRecord] = field(default_factory=list)
    rollouts: dict[int, RolloutRecord] = field(default_factory=dict)

    @property
    def steps(self) -> list[StepRecord]:
        """The training steps' records, without what differs from run to run."""
        return [without_times(record) for record in self.records if record["step"] != 0]


def without_times(record: StepRecord) -> StepRecord:
    return {k: v for k, v in record.items() if k != "time" and not k.startswith(("timing_s/", "cpu_s/"))}


def tiny_run(
    policy: Path,
    checkpoints: Path,
    method: Method,
    *,
    training: TrainingSettings = TRAINING,
    engine: EngineSettings = ENGINE,
    questions: Sequence[Question] | None = None,
    reward: RewardFunction = letter_reward,
    seed: int = 0,
    recorder: Recorder | None = None,
    on_step: Callable[[StepRecord], None] | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> TrainOutcome:
    """Train on ten questions unless others are given; records go to the recorder, then to `on_step`."""
    recorder = recorder or Recorder()

    def report(record: StepRecord) -> None:
        recorder.records.append(record)
        if on_step is not None:
            on_step(record)

    return train(
        method=method,
        training=training,
        engine=engine,
        policy=policy,
        questions=tiny_questions(10) if questions is None else questions,
        validation=tiny_questions(3, "v"),
        reward=reward,
        seed=seed,
        checkpoints=checkpoints,
        on_step=report,
        on_rollouts=recorder.rollouts.__setitem__,
        stop_requested=stop_requested,
    )


def final_weights(checkpoints: Path) -> dict[str, Tensor]:
    return load_file(checkpoints / "final" / "model.safetensors")


def same_weights(first: Path, second: Path) -> bool:
    """True when two runs ended with the same policy, bit for bit."""
    one, other = final_weights(first), final_weights(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
