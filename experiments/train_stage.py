"""The train stage: a run's training by its engine, from `config.yaml` to `checkpoints/final`.

A cluster's training environment runs this module: it needs torch, transformers, numpy and PyYAML, nothing
else, and EasyR1 for runs on it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval.datasets import load_questions, split_record
from eval.rewards import build_reward
from experiments.atomic_files import remove_old_drafts
from experiments.policies.prepare import prepare_policy
from experiments.provenance import write_provenance
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext, StageStopped
from experiments.step_log import append_step, cut_back
from fastrl.engines.easyr1.settings import EASYR1_ENGINES
from fastrl.engines.reference.loop import checkpointed_step, total_steps
from fastrl.engines.reference.loop import train as train_policy
from fastrl.engines.reference.settings import TrainingSettings, engine_settings, training_settings
from fastrl.method import build_method
from fastrl.rollout_record import RolloutRecord


def train(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    """Train from the newest checkpoint, or from the starting policy, to the end.

    Writes steps.jsonl, provenance.json and checkpoints, and recorded rollouts when the settings ask for them.
    Raises StageStopped after a stop request, with a checkpoint of the last step.
    """
    # Of an attempt that was killed; nobody else writes there while this one holds the stage's lock.
    remove_old_drafts(run.rollouts, older_than=0.0)
    if config["engine"]["name"] in EASYR1_ENGINES:
        from experiments.easyr1_training import train_on_easyr1

        train_on_easyr1(run, config, context)
        return
    dataset = config["dataset"]
    training = training_settings(config["training"])
    method = build_method(config["method"])
    questions = load_questions(dataset, dataset["train_split"])
    validation = load_questions(dataset, dataset["validation_split"])
    policy = prepare_policy(config["model"], dataset, run.root / "models", context.announce)
    write_provenance(
        run,
        attempt=context.attempt,
        policy=policy.name if isinstance(policy, Path) else policy,
        steps=total_steps(training, method, len(questions)),
        data={"train": split_record(questions), "validation": split_record(validation)},
    )
    if not run.final_checkpoint.is_dir():
        step = checkpointed_step(run.checkpoints)
        dropped = cut_back(run.steps_path, step)
        context.announce(f"going on after step {step}; {dropped} records after it dropped")
    outcome = train_policy(
        method=method,
        training=training,
        engine=engine_settings(config["engine"]),
        policy=policy,
        questions=questions,
        validation=validation,
        reward=build_reward(dataset["reward"]),
        seed=config["seed"],
        checkpoints=run.checkpoints,
        on_step=lambda record: append_step(run.steps_path, record),
        on_rollouts=_recorder(run, training),
        stop_requested=context.stop_requested,
    )
    if not outcome.finished:
        raise StageStopped(f"stopped after step {outcome.step}, as asked")
    context.announce(f"finished at step {outcome.step}")


def _recorder(run: RunDirectory, training: TrainingSettings) -> Callable[[int, RolloutRecord], None] | None:
    if training.record_rollouts_every == 0:
        return None
    from experiments.rollout_files import write_rollouts

    return lambda step, record: write_rollouts(run.rollouts, step, record)
