"""Show what a stage of a run has printed, or follow it.

  fastrl logs RUN                        the latest attempt of the stage that was last at work
  fastrl logs RUN --stage train -f       follow it, over preemptions, until the stage ends
  fastrl logs RUN --attempt 1            an earlier attempt

RUN is a run id or its beginning, as far as it is unique.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from experiments.commands.arguments import add_words, refuse_overrides, results_root, sorted_words
from experiments.commands.run_names import named_run
from experiments.errors import UserError
from experiments.run_directory import RunDirectory

_POLL_SECONDS = 0.5
_LOGS = ("stdout.log", "stderr.log")


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "a run id, and paths.root=FOLDER when the results lie elsewhere")
    parser.add_argument("--stage", help="train, or evaluate-<benchmark> (default: the latest)")
    parser.add_argument("--attempt", type=int, metavar="N", help="default: the latest")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the stage ends")


def execute(arguments: Namespace) -> int:
    words = sorted_words(arguments.words, bare=True)
    refuse_overrides(words, ("paths",), "logs are shown as they are")
    if len(words.bare) != 1 or words.study:
        raise UserError("No run is named.", "command line", "fastrl logs RUN; fastrl status lists them")
    root = results_root(words.overrides).resolve()
    run = named_run(root, words.bare[0])
    stage = arguments.stage or _latest_stage(run)
    attempt = arguments.attempt or _attempt(run, stage)
    if attempt == 0:
        return _slurm_log(root, run, stage)
    shown: dict[Path, int] = {}
    while True:
        # Asked before reading: what was printed until then is shown for certain.
        entry = run.status().get(stage)
        # Attempts may have come and gone since the last look.
        last = attempt if arguments.attempt or entry is None else max(attempt, entry.attempt)
        for number in range(attempt, last + 1):
            for path in (run.attempt_path(stage, number) / name for name in _LOGS):
                _print_new(path, shown)
        if not arguments.follow or arguments.attempt or entry is None or entry.state in ("done", "failed"):
            break
        attempt = last
        time.sleep(_POLL_SECONDS)
    if entry is not None:
        print(f"== {run.run_id} {stage}: {entry.state}, attempt {entry.attempt}", file=sys.stderr)
    return 0


def _latest_stage(run: RunDirectory) -> str:
    status = run.status()
    return max(status, key=lambda stage: status[stage].updated) if status else "train"


def _attempt(run: RunDirectory, stage: str) -> int:
    entry = run.status().get(stage)
    if entry is not None:
        return entry.attempt
    if not run.config_path.is_file():
        raise UserError("This is no run.", str(run.path), "fastrl plan lists the run ids of a study")
    return 0


def _slurm_log(root: Path, run: RunDirectory, stage: str) -> int:
    """What Slurm wrote of a stage that has not got as far as an attempt."""
    from slurm.ledger import newest, submissions

    submitted = newest(submissions(root), {}).get((run.run_id, stage))
    if submitted is None:
        print(f"{run.run_id} {stage} has not been started and not been sent to a cluster")
        return 0
    log = submitted.submission.log(submitted.task)
    if not log.is_file():
        print(f"{run.run_id} {stage} has not been started; its job is {submitted.task}")
        return 0
    _print_new(log, {})
    return 0


def _print_new(path: Path, shown: dict[Path, int]) -> None:
    """Print what a file has got since the last call; a heading when it is new."""
    try:
        with path.open("rb") as stream:
            stream.seek(shown.get(path, 0))
            new = stream.read()
    except FileNotFoundError:
        return
    if new and path not in shown:
        print(f"== {path}", file=sys.stderr, flush=True)
    shown[path] = shown.get(path, 0) + len(new)
    sys.stdout.write(new.decode("utf-8", errors="replace"))
    sys.stdout.flush()
