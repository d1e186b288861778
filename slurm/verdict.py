"""The state of one stage, from what its run directory says and what Slurm says.

What a stage wrote about itself wins; where it could not write (it never started, its node died, it was
killed) Slurm's word counts: the queue before accounting. A job of which nothing knows any more is `lost`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from experiments.status import StageStatus
from slurm.ledger import Submitted
from slurm.queue import NEVER, JobState

StageState = Literal[
    "pending",
    "queued",
    "running",
    "ending",
    "done",
    "failed",
    "preempted",
    "interrupted",
    "cancelled",
    "timeout",
    "skipped",
    "stalled",
    "killed",
    "out_of_memory",
    "node_failure",
    "died",
    "lost",
    "damaged",
]
Source = Literal["status.json", "lock", "squeue", "sacct", "job log", "ledger", "no record"]

ACTIVE: frozenset[StageState] = frozenset(("queued", "running", "ending"))
"""Somebody has the stage in hand."""

FAILED: frozenset[StageState] = frozenset(("failed",))
"""The stage said that it can't go on: `--retry failed`."""

LOST: frozenset[StageState] = frozenset(
    ("stalled", "killed", "out_of_memory", "node_failure", "died", "lost")
)
"""The stage ended without a word: `--retry lost`. All others that are not done are submitted again freely."""

DAMAGED: frozenset[StageState] = frozenset(("damaged",))
"""What the run says of its stages can't be read: nothing is submitted for it until that is put right."""

BAD = FAILED | LOST | DAMAGED
"""The stage does not go on by itself."""

STALLED_KIND = "StageStalled"
KILLED_KIND = "StageKilled"
"""Kinds of error that the job writes for a stage that it ended, or that was killed."""

_BY_KIND: dict[str, StageState] = {STALLED_KIND: "stalled", KILLED_KIND: "killed"}
_BY_SLURM: dict[str, StageState] = {
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "out_of_memory",
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "PREEMPTED": "preempted",
}


_OUT_OF_MEMORY = re.compile(r"(?i)exceeded memory limit|oom[-_ ]?kill|out of memory")


@dataclass(frozen=True)
class Verdict:
    """state: of the stage. source: what was believed. detail: why, in a few words, or ""."""

    state: StageState
    source: Source
    detail: str


def judge(
    entry: StageStatus | None, alive: bool, submitted: Submitted | None, job: JobState | None
) -> Verdict:
    """The state of a stage.

    entry: its part of status.json. alive: whether its lock has a live holder. submitted: its newest
    submission. job: that one's task, as Slurm knows it.
    """
    if entry is not None and entry.state == "done":
        return Verdict("done", "status.json", "")
    current = entry is not None and (submitted is None or _is_of(entry, submitted, job))
    ended = job is not None and not job.active and entry is not None and entry.slurm_job_id == job.raw_id
    if entry is not None and entry.state == "running" and alive and not ended:
        return Verdict("running", "status.json", f"attempt {entry.attempt}")
    if job is not None and job.active:
        return _active(entry if current else None, job)
    if entry is not None and current and entry.state == "failed":
        return _failed(entry, job)
    if submitted is None:
        if entry is None:
            return Verdict("pending", "no record", "")
        if entry.state == "running":
            return Verdict("died", "lock", f"process {entry.pid} on {entry.host} is gone")
        return Verdict(entry.state, "status.json", "")
    if submitted.cancelled:
        return Verdict("cancelled", "ledger", "fastrl cancel")
    if job is not None:
        return _ended(entry if current else None, job)
    if entry is not None and current and entry.state in ("preempted", "interrupted"):
        return Verdict(entry.state, "status.json", "")
    return Verdict("lost", "ledger", f"job {submitted.task} is in no queue and in no account")


def _is_of(entry: StageStatus, submitted: Submitted, job: JobState | None) -> bool:
    """Whether a stage wrote its entry in its newest job. By times only where Slurm has forgotten the job, for
    the clocks of the node and of the submitter may differ."""
    if job is not None and entry.slurm_job_id is not None:
        return entry.slurm_job_id == job.raw_id
    return entry.updated >= submitted.submission.created


def _active(entry: StageStatus | None, job: JobState) -> Verdict:
    if job.state == "COMPLETING":
        return Verdict("ending", "squeue", job.node)
    if job.state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"):
        if job.reason == NEVER:
            return Verdict("skipped", "squeue", "its dependency can never hold")
        if entry is not None:
            return Verdict("queued", "squeue", f"again, after attempt {entry.attempt}; {job.reason}")
        return Verdict("queued", "squeue", job.reason)
    return Verdict("running", "squeue", f"job {job.state.lower()}, starting or ending its stage")


def _failed(entry: StageStatus, job: JobState | None) -> Verdict:
    error = entry.error
    detail = f"{error.kind}: {error.message}" if error else ""
    state = _BY_KIND.get(error.kind, "failed") if error else "failed"
    if state == "killed" and job is not None and job.state == "OUT_OF_MEMORY":
        return Verdict("out_of_memory", job.source, detail)
    return Verdict(state, "status.json", detail)


def _ended(entry: StageStatus | None, job: JobState) -> Verdict:
    how = f"job {job.state.lower()}" + (f", exit {job.exit_code}" if job.exit_code else "")
    if NEVER in job.reason:
        return Verdict("skipped", job.source, "what it waited for did not succeed")
    if job.state in _BY_SLURM:
        return Verdict(_BY_SLURM[job.state], job.source, how)
    if entry is not None and entry.state in ("preempted", "interrupted"):
        return Verdict(entry.state, "status.json", how)
    return Verdict("died", job.source, how)


def judge_again(verdict: Verdict, job_log: str) -> Verdict:
    """A verdict of a stage that died or was killed, with what the end of its job's own log adds.

    Sites that enforce memory limits without cgroups call such a job failed, and say why in its log alone.
    """
    lines = [line.strip() for line in job_log.splitlines() if line.strip()]
    if any(_OUT_OF_MEMORY.search(line) for line in lines):
        reason = next(line for line in reversed(lines) if _OUT_OF_MEMORY.search(line))
        return Verdict("out_of_memory", "job log", reason)
    if verdict.state == "died" and lines:
        return Verdict(verdict.state, verdict.source, f"{verdict.detail}: {lines[-1]}")
    return verdict
