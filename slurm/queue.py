"""What Slurm knows of jobs: the queue first, then accounting."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from slurm.client import SlurmError, call

ACTIVE = frozenset(
    (
        *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING"),
        *("STAGE_OUT", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"),
        "SPECIAL_EXIT",
    )
)
"""Slurm's states of a job that has not ended."""

NEVER = "DependencyNeverSatisfied"


@dataclass(frozen=True)
class TaskId:
    """A task of a job array, as `squeue` and `sacct` name it: `12_3`."""

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job}_{self.index}"


@dataclass(frozen=True)
class JobState:
    """One task in Slurm's words. raw_id: SLURM_JOB_ID inside the job. exit_code: `code:signal`, or ""."""

    state: str
    source: Literal["squeue", "sacct"]
    raw_id: str
    reason: str
    node: str
    exit_code: str

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


@dataclass(frozen=True)
class Queue:
    """What was found, by task; comments: job ids by the comment they were sent with; notes: what failed."""

    states: dict[TaskId, JobState]
    comments: dict[str, str]
    notes: tuple[str, ...]


def read_queue(wanted: Collection[TaskId]) -> Queue:
    """The present state of tasks, as far as Slurm knows them. Never raises: notes say what did not answer."""
    try:
        states, comments = _squeue()
    except SlurmError as error:
        return Queue({}, {}, (f"{error.what} States are those of the run directories.",))
    found = {task: states[task] for task in wanted if task in states}
    jobs = sorted({task.job for task in wanted if task not in found})
    notes = []
    if jobs:
        try:
            found = _sacct(jobs) | found
        except SlurmError as error:
            notes.append(f"No accounting: {error.what} Jobs that left the queue long ago are not known.")
    return Queue(found, comments, tuple(notes))


def _squeue() -> tuple[dict[TaskId, JobState], dict[str, str]]:
    """The user's tasks, ended ones too for as long as the controller remembers them; and comments."""
    fields = "%F|%K|%A|%T|%r|%N|%k"
    shown = call(["squeue", f"--user={os.getuid()}", "--states=all", "-r", "-h", "-o", fields])
    states, comments = {}, {}
    for line in shown.splitlines():
        job, index, raw, state, reason, node, comment = line.split("|", 6)
        comments[comment] = job
        if index.isdigit():
            states[TaskId(job, int(index))] = JobState(state, "squeue", raw, reason, node, "")
    return states, comments


def _sacct(jobs: Collection[str]) -> dict[TaskId, JobState]:
    fields = "JobID,JobIDRaw,State,ExitCode,NodeList,Reason"
    shown = call(["sacct", "-X", "-P", "-n", "-o", fields, "-j", ",".join(jobs)])
    states = {}
    for line in shown.splitlines():
        name, raw, state, exit_code, node, reason = line.split("|", 5)
        job, _, index = name.partition("_")
        if index.isdigit():
            # "CANCELLED by 1000"
            word = state.partition(" ")[0]
            node = "" if node == "None assigned" else node
            states[TaskId(job, int(index))] = JobState(word, "sacct", raw, reason, node, exit_code)
    return states
