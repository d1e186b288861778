"""What goes wrong on a cluster: the state that is shown, and that the study ends right all the same.

One study has a cell for each accident, and they happen at the same time, on a real Slurm.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rehearsal import (
    EVALUATE,
    TRAIN,
    cell_config,
    expected_of,
    look,
    outcome_of,
    run_of,
    send,
    states,
    until,
)

from experiments.identity import run_id
from slurm.cancel import cancel
from slurm.client import SlurmError, call
from slurm.overview import Overview, StageView
from slurm.submit import Outcome
from slurm.verdict import FAILED, LOST

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

ACCIDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("none", {}),
    "exception": ("raise", {}),
    "process_killed": ("killed", {}),
    "exit_code": ("exit", {}),
    "job_killed": ("job_killed", {}),
    # Longer than stages that do not stall take to start, all at once on a slow machine.
    "stalled": ("stall", {"stall_minutes": 0.75}),
    "evaluation_stalled": ("evaluation_stall", {"stall_minutes": 0.75}),
    "out_of_memory": ("memory", {"shapes.train.memory": "300M"}),
    "full_disk": ("full_disk", {}),
    "walltime": ("deaf", {"shapes.train.minutes": 1}),
    "asked_to_save": ("wait", {}),
    "asked_to_end": ("wait", {}),
    "requeued": ("wait", {}),
    "cancelled": ("wait", {}),
    "cancelled_pending": ("none", {"extra": {"begin": "now+1hour"}}),
    "cancelled_by_us": ("none", {"extra": {"begin": "now+2hours"}}),
    "node_failure": ("wait", {"extra": {"nodelist": "node2"}}),
    "preempted": ("wait", {"partition": "preempt", "extra": {"nodelist": "node3"}, "shapes.train.cpus": 9}),
}
"""Name of each cell: the accident of its stage, and its own Slurm settings."""

NAMES = list(ACCIDENTS)


@dataclass(frozen=True)
class Story:
    """seen: each cell's stage, as shown when the first submission had come to rest. plain: what submitting
    again without --retry did. ended: the states in the end."""

    root: Path
    configs: dict[str, dict[str, Any]]
    seen: dict[str, dict[str, StageView]]
    plain: Outcome
    ended: Overview


@pytest.fixture(scope="module")
def story(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("accidents")
    configs = {
        name: cell_config(seed, accident, changes)
        for seed, (name, (accident, changes)) in enumerate(ACCIDENTS.items())
    }
    cells = list(configs.values())
    send(root, cells)
    job = {name: str(view.submitted.task) for name, view in views(root, configs, TRAIN) if view.submitted}
    for name, happen in OUTSIDE.items():
        if not name.startswith("cancelled_"):
            until(lambda: len(run_of(root, configs[name]).steps()) >= 3, f"{name} at step 3")  # noqa: B023
        happen(job[name])
    cancel(root, lambda submission, run, stage: run == run_id(configs["cancelled_by_us"]))
    at_rest = until(lambda: rested(look(root, cells)), "every job at its end", seconds=280.0)
    seen = dict(zip(NAMES, (view.stages for view in at_rest.cells), strict=True))
    mended = [cell_config(config["seed"], config["training"]["accident"]) for config in cells]
    plain = send(root, mended)
    send(root, mended, retry="all")
    ended = until(lambda: done(look(root, mended)), "the study done", seconds=280.0)
    return Story(root, configs, seen, plain, ended)


def views(root: Path, configs: dict[str, dict[str, Any]], stage: str) -> list[tuple[str, StageView]]:
    overview = look(root, list(configs.values()))
    return [(name, view.stages[stage]) for name, view in zip(NAMES, overview.cells, strict=True)]


def rested(overview: Overview) -> Overview | None:
    busy = ("queued", "running", "ending", "pending")
    return None if any(state in busy for cell in states(overview) for state in cell.values()) else overview


def done(overview: Overview) -> Overview | None:
    return overview if all(set(cell.values()) == {"done"} for cell in states(overview)) else None


def fail_node(job: str) -> None:
    call(["scontrol", "update", "nodename=node2", "state=down", "reason=rehearsal"])
    # The node's own daemon is alive, so that it may be back by itself.
    with contextlib.suppress(SlurmError):
        call(["scontrol", "update", "nodename=node2", "state=resume"])


def preempt(job: str) -> None:
    """A job of the partition gpu needs more of the node than the preemptable one leaves."""
    call(["sbatch", "-w", "node3", "-c", "10", "--mem=100M", "-o", "/dev/null", "--wrap", "sleep 2"])


OUTSIDE: dict[str, Callable[[str], object]] = {
    "cancelled_pending": lambda job: call(["scancel", job]),
    "asked_to_save": lambda job: call(["scancel", "--batch", "--signal=USR2", job]),
    "asked_to_end": lambda job: call(["scancel", "--batch", "--signal=TERM", job]),
    "requeued": lambda job: call(["scontrol", "requeue", job]),
    "cancelled": lambda job: call(["scancel", job]),
    "node_failure": fail_node,
    "preempted": preempt,
}
"""Accidents that come from outside the job, by the name of the cell."""


@pytest.mark.parametrize(
    ("name", "state", "sources", "reason"),
    [
        ("exception", "failed", ("status.json",), "ValueError: step 4 can't be counted"),
        ("process_killed", "killed", ("status.json",), "ended by SIGKILL"),
        ("exit_code", "died", ("squeue", "sacct"), "job failed"),
        # The stage is told to save when its job's process is gone.
        ("job_killed", "preempted", ("status.json",), "job failed"),
        ("stalled", "stalled", ("status.json",), "no new training step for 0.75 minutes"),
        ("out_of_memory", "out_of_memory", ("squeue", "sacct", "job log"), ""),
        ("full_disk", "failed", ("status.json",), "no space left to write optimizer"),
        ("walltime", "timeout", ("squeue", "sacct"), "job timeout"),
        ("cancelled", "cancelled", ("squeue", "sacct"), "job cancelled"),
        # Of a task that is cancelled before it starts Slurm keeps no trace, unless we keep one.
        ("cancelled_pending", "lost", ("ledger",), "in no queue and in no account"),
        ("cancelled_by_us", "cancelled", ("ledger",), "fastrl cancel"),
    ],
)
def test_the_state_shown_after_an_accident(
    story: Story, name: str, state: str, sources: tuple[str, ...], reason: str
) -> None:
    verdict = story.seen[name][TRAIN].verdict
    assert verdict.state == state, verdict
    assert verdict.source in sources
    assert reason in verdict.detail


def test_an_evaluation_that_makes_no_progress_is_ended_too(story: Story) -> None:
    verdict = story.seen["evaluation_stalled"][EVALUATE].verdict
    assert (verdict.state, verdict.source) == ("stalled", "status.json")
    assert "no new batch of responses for 0.75 minutes" in verdict.detail


@pytest.mark.parametrize("name", ["exception", "process_killed", "out_of_memory", "walltime", "cancelled"])
def test_an_evaluation_whose_training_did_not_succeed_is_skipped_and_not_waiting(
    story: Story, name: str
) -> None:
    assert story.seen[name][EVALUATE].verdict.state == "skipped"


@pytest.mark.parametrize("name", ["asked_to_save", "asked_to_end", "requeued", "node_failure", "preempted"])
def test_a_job_that_went_back_into_the_queue_went_on_by_itself(story: Story, name: str) -> None:
    assert story.seen[name][TRAIN].verdict.state == "done"
    assert story.seen[name][EVALUATE].verdict.state == "done"
    attempts = run_of(story.root, story.configs[name]).status()[TRAIN].attempt
    assert attempts == 2


def test_the_log_of_a_stalled_training_shows_where_it_hung(story: Story) -> None:
    log = run_of(story.root, story.configs["stalled"]).attempt_path(TRAIN, 1) / "stderr.log"
    assert "accident_stage.py" in log.read_text()


def test_submitting_again_sends_what_was_only_interrupted_and_lists_what_ended_badly(story: Story) -> None:
    names = dict(zip((cell.run_id for cell in story.ended.plan.cells), NAMES, strict=True))
    sent = {names[step.cell.run_id] for step in story.plain.decision.send}
    left = {names[cell.run_id] for cell, _ in story.plain.decision.left}
    assert sent == {"walltime", "cancelled", "cancelled_by_us", "job_killed"}
    bad = {
        name
        for name in NAMES
        if any(view.verdict.state in FAILED | LOST for view in story.seen[name].values())
    }
    assert left == bad
    assert bad >= {
        "exception",
        "process_killed",
        "exit_code",
        "stalled",
        "evaluation_stalled",
        "out_of_memory",
        "full_disk",
        "cancelled_pending",
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_ends_like_an_undisturbed_one(story: Story, name: str) -> None:
    assert outcome_of(story.root, story.configs[name]) == expected_of(story.configs[name])


def test_no_process_of_a_killed_job_is_left(story: Story) -> None:
    def left() -> str:
        command = ["pgrep", "-af", str(story.root)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    until(lambda: not left(), "no process with the results folder in its command line", seconds=60.0)
