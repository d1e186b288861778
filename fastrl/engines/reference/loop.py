"""The training loop of the embedded engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fastrl.engines.reference.checkpoint import (
    checkpoint_to_resume,
    checkpointed_step,
    final_policy,
    prepare_checkpoint,
    restore_checkpoint,
    save_final,
)
from fastrl.engines.reference.clock import StageClock
from fastrl.engines.reference.data_order import DataPosition
from fastrl.engines.reference.image_check import check_images
from fastrl.engines.reference.policy import check_prompts, load_policy
from fastrl.engines.reference.records import StepRecord
from fastrl.engines.reference.run import prepare_run
from fastrl.engines.reference.settings import EngineSettings, TrainingSettings
from fastrl.engines.reference.step import RunState, run_step
from fastrl.engines.reference.validation import validation_accuracy
from fastrl.method import Method, initial_method_state, planned_questions
from fastrl.rewards import RewardFunction
from fastrl.rollout_record import RolloutRecord
from fastrl.rollouts import Question

__all__ = ["TrainOutcome", "checkpointed_step", "total_steps", "train"]


@dataclass(frozen=True)
class TrainOutcome:
    """step: the number of finished steps. finished: False after a stop request; `train` again goes on."""

    step: int
    finished: bool


def total_steps(training: TrainingSettings, method: Method, questions: int) -> int:
    """Steps of a run, the same for every method whose selector plans no further questions for a step.

    ValueError if the questions do not fill one step.
    """
    planned = planned_questions(method, training.questions_per_step)
    if questions < planned:
        extra = f", for which {type(method.selector).__name__} plans {planned} questions a step"
        raise ValueError(
            f"{questions} training questions are fewer than training.questions_per_step="
            f"{training.questions_per_step}{extra if planned > training.questions_per_step else ''}; "
            "lower that setting or give more questions"
        )
    return training.epochs * (questions // planned)


def train(
    *,
    method: Method,
    training: TrainingSettings,
    engine: EngineSettings,
    policy: Path | str,
    questions: Sequence[Question],
    validation: Sequence[Question],
    reward: RewardFunction,
    seed: int,
    checkpoints: Path,
    on_step: Callable[[StepRecord], None],
    on_rollouts: Callable[[int, RolloutRecord], None] | None,
    stop_requested: Callable[[], bool],
) -> TrainOutcome:
    """Train a policy to the end, or until `stop_requested()` is true between two steps.

    Goes on from the newest complete checkpoint in `checkpoints`, the only folder written to; cut the step log
    back to `checkpointed_step(checkpoints)` before. On a CPU the resumed run equals an uninterrupted one bit
    for bit. A finished run returns at once.

    policy: a Hugging Face folder, of a causal language model, or, with `VisionEngineSettings`, of an
    image-text model. questions: drawn without end in seeded order, so that a filter's refills and skips run
    into further passes over the data; a pass is an epoch. on_step: called once a step, before the step's
    checkpoint appears, and with `{"step": 0, "time", "val/accuracy"}` before the first one.
    on_rollouts: called every `record_rollouts_every` steps, before `on_step`.

    Errors: ValueError (settings and questions do not fit), PolicyError, RewardError, TrainingDiverged,
    CheckpointError.
    """
    steps = total_steps(training, method, len(questions))
    if final_policy(checkpoints).is_dir():
        return TrainOutcome(steps, finished=True)
    torch.set_num_threads(engine.threads)
    loaded = load_policy(policy, engine.device, engine.dtype)
    run = prepare_run(method, training, engine, loaded, questions, reward, seed)
    for group in (questions, validation):
        check_prompts(run.policy, group, training.max_prompt_tokens, training.max_response_tokens)
    check_images(run.policy, run.scorer, [*questions, *validation])
    validates = training.validate_every > 0 and len(validation) > 0

    newest = checkpoint_to_resume(checkpoints)
    if newest is not None:
        state = restore_checkpoint(newest, method, seed, run.optimizer, run.policy.device)
    else:
        state = RunState(0, DataPosition(epoch=0, used=0), initial_method_state(method))
        if validates:
            accuracy = validation_accuracy(run, validation, 0)
            on_step({"step": 0, "time": time.time(), "val/accuracy": accuracy})
    saved = state.step

    while state.step < steps:
        if stop_requested():
            if state.step > saved:
                prepare_checkpoint(checkpoints, method, state, seed, run.optimizer).commit(
                    training.keep_checkpoints
                )
            return TrainOutcome(state.step, finished=False)
        clock = StageClock(run.policy.device)
        result = run_step(run, state, steps, clock)
        state, record = result.state, result.record
        if validates and _due(training.validate_every, state.step, steps):
            with clock.stage("validation"):
                record["val/accuracy"] = validation_accuracy(run, validation, state.step)
        prepared = None
        if _due(training.checkpoint_every, state.step, steps):
            with clock.stage("save_checkpoint"):
                prepared = prepare_checkpoint(checkpoints, method, state, seed, run.optimizer)
        every = training.record_rollouts_every
        if on_rollouts is not None and every and state.step % every == 0:
            on_rollouts(state.step, result.rollouts)
        on_step({**record, **clock.record()})
        if prepared is not None:
            prepared.commit(training.keep_checkpoints)
            saved = state.step
    save_final(checkpoints, run.policy)
    return TrainOutcome(state.step, finished=True)


def _due(every: int, step: int, last: int) -> bool:
    """True every so many steps, and at the last one."""
    return step == last or (every > 0 and step % every == 0)
