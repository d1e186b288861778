"""Runs one stage of a run: `python -m experiments.stage RUN STAGE`, used by clusters and the local driver.

It takes the stage's lock, keeps status.json, sends output to the attempt's logs, and turns an exception into
`failed`.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from experiments.atomic_files import NO_SPACE, WriteError, remove_old_drafts, write_error, write_json
from experiments.attempt import Heartbeat, StopRequest, log_tail, output_to, report
from experiments.errors import UserError, did_you_mean, listed
from experiments.evaluation_currency import evaluation_is_current
from experiments.locks import Holder, Lock, LockHeld, acquire, live_holder
from experiments.provenance import attempt_environment
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext, StageFunction, StageStopped
from experiments.status import StageError, StageStatus, State, changed, write_entry

STAGES: Mapping[str, str] = {
    "train": "experiments.train_stage:train",
    "evaluate": "experiments.evaluate_stage:evaluate",
}
"""Stage functions as `module:function`; `evaluate` stands for every `evaluate-<benchmark>`."""

HEARTBEAT_SECONDS = 5.0

EXIT_CODES: Mapping[str, int] = {"done": 0, "failed": 1, "locked": 3, "preempted": 75, "interrupted": 130}
"""2 is wrong usage; 75 is the customary code for "try again"."""

_OLD_DRAFT_SECONDS = 600.0


@dataclass(frozen=True)
class StageOutcome:
    """How an execution ended.

    attempt: the latest, 0 when there was none. holder: who has the stage, when the state is `locked`.
    """

    stage: str
    state: State | Literal["locked"]
    attempt: int
    error: StageError | None = None
    holder: Holder | None = None

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.state]


def run_stage(
    run: RunDirectory,
    stage: str,
    stages: Mapping[str, str] = STAGES,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> StageOutcome:
    """Run a stage unless it is done or another process has it; in the main thread, for it handles signals.

    What the stage raises becomes a `failed` outcome. Raises UserError for an unknown stage or a damaged run.
    """
    config = run.config()
    reference = stage_reference(stage, config, stages)
    if stage_is_done(run, stage, config):
        return StageOutcome(stage, "done", _last_attempt(run, stage))
    try:
        lock = acquire(run.lock_path(stage))
    except LockHeld as held:
        return StageOutcome(stage, "locked", _last_attempt(run, stage), holder=held.holder)
    with lock:
        if stage_is_done(run, stage, config):
            return StageOutcome(stage, "done", _last_attempt(run, stage))
        return _attempt(run, stage, config, reference, lock, heartbeat_seconds)


def stage_reference(stage: str, config: Mapping[str, Any], stages: Mapping[str, str]) -> str:
    """The `module:function` behind a stage name. Raises UserError for a stage that the run does not have."""
    kind, _, benchmark = stage.partition("-")
    known = [name for name in stages if name != "evaluate"]
    if "evaluate" in stages:
        known += [f"evaluate-{name}" for name in config["benchmarks"]]
    if stage not in known:
        raise UserError(
            f'The run has no stage "{stage}".',
            f"stage {stage}",
            f"{did_you_mean(stage, known)}stages: {listed(known)}",
        )
    return stages[kind if benchmark else stage]


def stage_is_done(run: RunDirectory, stage: str, config: Mapping[str, Any]) -> bool:
    """Whether nothing is left to do: status.json says done, and the result still stands.

    The results of an evaluation stand as long as they come from the benchmark's present settings, questions
    and grader: a changed benchmark is evaluated again without training again.
    """
    entry = run.status().get(stage)
    if entry is None or entry.state != "done":
        return False
    kind, _, benchmark = stage.partition("-")
    if kind != "evaluate":
        return True
    try:
        results = run.results(benchmark)
    except UserError:
        # A damaged record is made again rather than mended by hand.
        return False
    return evaluation_is_current(results, config["benchmarks"][benchmark], config["seed"])


def record_death(run: RunDirectory, stage: str, error: StageError) -> None:
    """Set a stage whose process died without a word to `failed`, unless another process has taken it up."""
    try:
        lock = acquire(run.lock_path(stage))
    except LockHeld:
        return
    with lock:
        entry = run.status().get(stage)
        if entry is not None and entry.state == "running":
            write_entry(run.status_path, stage, changed(entry, "failed", error))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.stage", description="Run one stage of a run."
    )
    parser.add_argument("run", type=Path, help="the run's folder, <root>/runs/<run_id>")
    parser.add_argument("stage", help="train, or evaluate-<benchmark>")
    parser.add_argument(
        "--function", metavar="MODULE:NAME", help="what does the stage (default: the suite's own)"
    )
    given = parser.parse_args(arguments)
    faulthandler.enable()
    kind = given.stage.partition("-")[0]
    stages = {**STAGES, kind: given.function} if given.function else STAGES
    try:
        outcome = run_stage(RunDirectory(given.run.resolve()), given.stage, stages)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    holder = f" by {outcome.holder}" if outcome.holder else ""
    print(f"{given.run.name} {outcome.stage}: {outcome.state}{holder}")
    if outcome.error:
        print(f"{outcome.error.kind}: {outcome.error.message}\n{outcome.error.log_tail}", file=sys.stderr)
    return outcome.exit_code


def _attempt(
    run: RunDirectory,
    stage: str,
    config: dict[str, Any],
    reference: str,
    lock: Lock,
    heartbeat_seconds: float,
) -> StageOutcome:
    attempt, folder = _new_attempt_folder(run, stage)
    remove_old_drafts(run.path, _OLD_DRAFT_SECONDS)
    remove_old_drafts(lock.path.parent, _OLD_DRAFT_SECONDS)
    write_json(folder / "env.json", attempt_environment(sys.argv))
    now, holder = time.time(), lock.holder
    entry = StageStatus("running", attempt, now, now, holder.host, holder.pid, holder.job_id, error=None)
    write_entry(run.status_path, stage, entry)
    stop = StopRequest()
    beat = Heartbeat(lock, run.status_path, stage, entry, heartbeat_seconds, lambda: stop.ask("preempted"))
    with output_to(folder), stop.on_signals(), beat:
        context = StageContext(stage, attempt, stop, lambda message: report(sys.stdout, message))
        state, error = _call(reference, run, config, context, stop, folder)
    if beat.lost:
        # The stage is another process's now, and so is its entry in status.json.
        return StageOutcome(stage, "locked", attempt, holder=live_holder(lock.path))
    try:
        write_entry(run.status_path, stage, changed(entry, state, error))
    except WriteError as failure:
        state, error = "failed", error or StageError("WriteError", str(failure), "")
    return StageOutcome(stage, state, attempt, error)


def _call(
    reference: str,
    run: RunDirectory,
    config: dict[str, Any],
    context: StageContext,
    stop: StopRequest,
    folder: Path,
) -> tuple[State, StageError | None]:
    """Run the stage function; how it ended, and why when it failed."""
    try:
        module, _, name = reference.partition(":")
        function: StageFunction = getattr(importlib.import_module(module), name)
        function(run, config, context)
        return "done", None
    except KeyboardInterrupt:
        return "interrupted", None
    except StageStopped as stopped:
        if stop.state is not None:
            return stop.state, None
        return "failed", _failure(stopped, folder)
    except (Exception, SystemExit) as error:
        return "failed", _failure(error, folder)


def _failure(error: BaseException, folder: Path) -> StageError:
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        error = write_error(Path(error.filename or folder), error)
    # On a full disk the log can't be written either; the error itself must still arrive.
    with contextlib.suppress(OSError):
        if not isinstance(error, UserError):
            traceback.print_exception(error)
        sys.stderr.flush()
    return StageError(type(error).__name__, str(error), log_tail(folder))


def _new_attempt_folder(run: RunDirectory, stage: str) -> tuple[int, Path]:
    attempt = _last_attempt(run, stage) + 1
    while True:
        folder = run.attempt_path(stage, attempt)
        try:
            folder.mkdir(parents=True)
            return attempt, folder
        except FileExistsError:
            attempt += 1
        except OSError as error:
            raise write_error(folder, error) from error


def _last_attempt(run: RunDirectory, stage: str) -> int:
    entry = run.status().get(stage)
    return entry.attempt if entry else 0


if __name__ == "__main__":
    sys.exit(main())
