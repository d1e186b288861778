"""The evaluate stages, `evaluate-<benchmark>`: the trained policy on one benchmark."""

from __future__ import annotations

from typing import Any

from eval.evaluate import EvaluationStopped
from eval.evaluate import evaluate as evaluate_policy
from experiments.atomic_files import remove_old_drafts
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext, StageStopped
from experiments.starting_policy import record_start


def evaluate(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    """Evaluate `checkpoints/final` on the stage's benchmark, into `eval/<benchmark>/`.

    The starting policy is evaluated with it, once; see `record_start`. Raises
    eval.checkpoint.CheckpointError when the run is not trained, StageStopped after a stop request.
    """
    benchmark = context.stage.partition("-")[2]
    # Of an attempt that was killed; nobody else writes there while this one holds the stage's lock.
    remove_old_drafts(run.evaluation_path(benchmark), older_than=0.0)
    try:
        evaluate_policy(
            checkpoint=run.final_checkpoint,
            benchmark=config["benchmarks"][benchmark],
            output=run.evaluation_path(benchmark),
            seed=config["seed"],
            stop_requested=context.stop_requested,
            announce=context.announce,
        )
        record_start(run, config, benchmark, context)
    except EvaluationStopped as stopped:
        raise StageStopped(str(stopped)) from stopped
