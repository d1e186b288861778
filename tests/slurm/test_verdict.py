"""Which source is believed, in every case in which the sources differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.status import StageError, StageStatus, State
from slurm.ledger import JobArray, StageTask, Submission, Submitted
from slurm.queue import JobState, TaskId
from slurm.verdict import judge

SENT = 1000.0


def entry(state: State, updated: float = SENT + 5, job: str = "70", kind: str = "") -> StageStatus:
    error = StageError(kind, "why", "") if kind else None
    return StageStatus(state, 1, updated, updated, "node1", 4321, job, error)


def submitted(cancelled: bool = False) -> Submitted:
    array = JobArray(1, "study-train", "7", "", 30.0, 3, 60.0, {0: StageTask("run", "train", ("true",))})
    submission = Submission(Path("/r/slurm/s"), "study", SENT, "site", "/code", (array,))
    return Submitted(submission, array, TaskId("7", 0), cancelled)


def job(state: str, reason: str = "", source: str = "squeue", exit_code: str = "") -> JobState:
    return JobState(state, source, "70", reason, "node1", exit_code)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "alive", "slurm", "state", "source"),
    [
        # What the stage says of itself wins, and Slurm may say what it likes.
        (entry("done"), False, job("FAILED"), "done", "status.json"),
        (entry("done", SENT - 50), False, job("PENDING"), "done", "status.json"),
        (entry("failed", kind="ValueError"), False, job("FAILED"), "failed", "status.json"),
        (entry("failed", kind="StageKilled"), False, job("FAILED"), "killed", "status.json"),
        (entry("failed", kind="StageStalled"), False, job("FAILED"), "stalled", "status.json"),
        (entry("running"), True, job("RUNNING"), "running", "status.json"),
        (entry("running"), True, None, "running", "status.json"),
        # A lock on another node looks alive for a while after its job has been ended.
        (entry("running"), True, job("NODE_FAIL"), "node_failure", "squeue"),
        (entry("failed", kind="StageKilled"), False, job("OUT_OF_MEMORY"), "out_of_memory", "squeue"),
        # A stage that could not say it.
        (entry("running"), False, job("FAILED", exit_code="0:9"), "died", "squeue"),
        (entry("running"), False, job("TIMEOUT"), "timeout", "squeue"),
        (entry("running"), False, job("CANCELLED", source="sacct"), "cancelled", "sacct"),
        (entry("running"), False, None, "lost", "ledger"),
        (None, False, job("FAILED", exit_code="127:0"), "died", "squeue"),
        (None, False, None, "lost", "ledger"),
        (None, False, job("CANCELLED", "DependencyNeverSatisfied"), "skipped", "squeue"),
        (None, False, job("PENDING", "DependencyNeverSatisfied"), "skipped", "squeue"),
        # In the queue, for the first time or again.
        (None, False, job("PENDING", "Resources"), "queued", "squeue"),
        (entry("preempted"), False, job("PENDING", "BeginTime"), "queued", "squeue"),
        (entry("failed", SENT - 50, kind="ValueError"), False, job("PENDING"), "queued", "squeue"),
        (None, False, job("COMPLETING"), "ending", "squeue"),
        (None, False, job("RUNNING"), "running", "squeue"),
        (entry("preempted"), False, job("CANCELLED"), "cancelled", "squeue"),
        (entry("preempted"), False, job("FAILED", exit_code="75:0"), "preempted", "status.json"),
        (entry("preempted"), False, None, "preempted", "status.json"),
        # An old failure says nothing of a newer job.
        (entry("failed", SENT - 50, kind="ValueError"), False, None, "lost", "ledger"),
        # Clocks of nodes differ from the submitter's: the job's number says whose entry it is.
        (entry("failed", SENT - 50, kind="ValueError"), False, job("FAILED"), "failed", "status.json"),
        (entry("failed", job="69", kind="ValueError"), False, job("NODE_FAIL"), "node_failure", "squeue"),
        (entry("preempted", SENT - 50), False, job("FAILED", exit_code="75:0"), "preempted", "status.json"),
        (entry("preempted", job="69"), False, job("FAILED", exit_code="1:0"), "died", "squeue"),
    ],
)
def test_a_stage_that_was_sent(
    status: StageStatus | None, alive: bool, slurm: JobState | None, state: str, source: str
) -> None:
    verdict = judge(status, alive, submitted(), slurm)
    assert (verdict.state, verdict.source) == (state, source)


@pytest.mark.parametrize(
    ("status", "alive", "state", "source"),
    [
        (None, False, "pending", "no record"),
        (entry("running"), True, "running", "status.json"),
        (entry("running"), False, "died", "lock"),
        (entry("interrupted"), False, "interrupted", "status.json"),
        (entry("failed", kind="ValueError"), False, "failed", "status.json"),
        (entry("done"), False, "done", "status.json"),
    ],
)
def test_a_stage_of_this_machine_alone(
    status: StageStatus | None, alive: bool, state: str, source: str
) -> None:
    verdict = judge(status, alive, None, None)
    assert (verdict.state, verdict.source) == (state, source)


def test_what_was_cancelled_on_request_is_known_without_slurm() -> None:
    assert judge(None, False, submitted(cancelled=True), None).state == "cancelled"
