"""What has been submitted: `<root>/slurm/<submission>/submission.json`, one folder a `fastrl submit`.

The folder also holds the batch scripts and what Slurm writes of each job. The record is written before a job
is sent and again after, so that no job is ever without one: one that was sent just before its submitter died
is found by its comment.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.atomic_files import write_file, write_json
from experiments.errors import UserError
from experiments.locks import acquire_patiently
from slurm.queue import TaskId

SCHEMA = 1
REPORT = "report"
"""The stage name of the job that writes a study's report; it belongs to no run."""

_LOCK_SECONDS = 60.0
_NUMBERED = re.compile(r"(?P<number>\d+)-\d{8}-\d{6}-[0-9a-f]{8}$")


@dataclass(frozen=True)
class StageTask:
    """A stage of a run as a task of an array. run_id: "" for a study's report and for a gate."""

    run_id: str
    stage: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class JobArray:
    """One job array. number: of its script in the folder. job_id: None until it is sent.

    depends_on: sbatch's dependency, or "". stall_minutes, max_requeues, ray_join_seconds: see SlurmSettings.
    tasks: by index.
    """

    number: int
    name: str
    job_id: str | None
    depends_on: str
    stall_minutes: float
    max_requeues: int
    ray_join_seconds: float
    tasks: dict[int, StageTask]


@dataclass(frozen=True)
class Submission:
    """One `fastrl submit`. created: unix seconds. code: folder of the code snapshot. cancelled: task names of
    `fastrl cancel`, for Slurm keeps no trace of a task that is cancelled before it starts."""

    folder: Path
    study: str
    created: float
    cluster: str
    code: str
    arrays: tuple[JobArray, ...]

    @property
    def root(self) -> Path:
        return self.folder.parent.parent

    def script(self, array: JobArray) -> Path:
        return self.folder / f"array-{array.number}.sh"

    def log(self, task: TaskId) -> Path:
        """What Slurm writes of a task: set-up lines, and what went wrong before its stage could start."""
        return self.folder / f"{task}.log"

    def node_log(self, task: TaskId, node: str) -> Path:
        """What Ray on one node of a task says."""
        return self.folder / f"{task}.ray-{node}.log"

    def comment(self, array: JobArray) -> str:
        """Marks the jobs of an array in Slurm's queue."""
        return f"fastrl:{self.folder.name}:{array.number}"

    def with_array(self, array: JobArray) -> Submission:
        """The submission with an array added, or replaced by its number."""
        others = tuple(each for each in self.arrays if each.number != array.number)
        return replace(self, arrays=(*others, array))


@dataclass(frozen=True)
class Submitted:
    """The newest submission of one stage of one run."""

    submission: Submission
    array: JobArray
    task: TaskId
    cancelled: bool


def new_folder(root: Path) -> Path:
    """A fresh submission folder, numbered after all that are there.

    The number says which of two submissions is the newer one: clocks of login nodes differ, and two may be
    sent within a second. The caller holds the lock on submitting. The token keeps names, which mark jobs in
    Slurm's queue, from coming back when the newest folder is moved away.
    """
    number = 1 + max(map(_number, slurm_folder(root).glob("*/")), default=0)
    return slurm_folder(root) / f"{number:05d}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


def slurm_folder(root: Path) -> Path:
    return root / "slurm"


def write_submission(submission: Submission) -> None:
    """Write or replace the record. Raises WriteError."""
    # By hand, for `asdict` copies every task and takes ten times as long.
    record = {key: value for key, value in vars(submission).items() if key not in ("folder", "arrays")}
    arrays = [
        {**vars(array), "tasks": {index: vars(task) for index, task in array.tasks.items()}}
        for array in submission.arrays
    ]
    # On one line: with indentation, Python's encoder is an eighth as fast.
    text = json.dumps({"schema": SCHEMA, **record, "arrays": arrays}, ensure_ascii=False)
    write_file(submission.folder / "submission.json", f"{text}\n")


def read_submission(folder: Path) -> Submission:
    """Raises UserError when the record can't be read."""
    path = folder / "submission.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record.pop("schema") != SCHEMA:
            raise ValueError(f"it is not of schema {SCHEMA}")
        return Submission(folder=folder, **{**record, "arrays": tuple(map(_array, record["arrays"]))})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"The record of a submission can't be read: {error}.",
            str(path),
            f"cancel its jobs (squeue -o %k shows them as fastrl:{folder.name}:N), then move the folder away",
            exit_code=1,
        ) from None


def submissions(root: Path) -> Iterator[Submission]:
    """Every submission under a results root, oldest first."""
    folders = (path.parent for path in slurm_folder(root).glob("*/submission.json"))
    for folder in sorted(folders, key=lambda each: (_number(each), each.name)):
        yield read_submission(folder)


def mark_cancelled(submission: Submission, tasks: list[TaskId]) -> None:
    """Remember that tasks were cancelled on request.

    Raises UserError while another process is at it, WriteError.
    """
    with acquire_patiently(submission.folder / "cancelled.lock", _LOCK_SECONDS, "cancelling"):
        names = sorted({*_cancelled(submission.folder), *map(str, tasks)})
        write_json(submission.folder / "cancelled.json", {"tasks": names})


def newest(sent: Iterable[Submission], comments: Mapping[str, str]) -> dict[tuple[str, str], Submitted]:
    """The newest submission of each (run id, stage); a report's key is ("", "report:<study>").

    sent: oldest first. comments: job ids by comment, to find arrays whose submitter died before it wrote down
    their ids.
    """
    found: dict[tuple[str, str], Submitted] = {}
    for submission in sent:
        cancelled = _cancelled(submission.folder)
        for array in submission.arrays:
            job_id = array.job_id or comments.get(submission.comment(array))
            if job_id is None:
                continue
            for index, task in array.tasks.items():
                name = TaskId(job_id, index)
                stage = task.stage if task.run_id else f"{task.stage}:{submission.study}"
                found[task.run_id, stage] = Submitted(submission, array, name, str(name) in cancelled)
    return found


def _number(folder: Path) -> int:
    """Of a submission's folder; 0 for one from before they were numbered, whose name begins with its date."""
    numbered = _NUMBERED.match(folder.name)
    return int(numbered["number"]) if numbered else 0


def _cancelled(folder: Path) -> frozenset[str]:
    try:
        return frozenset(json.loads((folder / "cancelled.json").read_text(encoding="utf-8"))["tasks"])
    except FileNotFoundError:
        return frozenset()


def _array(record: dict[str, Any]) -> JobArray:
    tasks = {
        int(index): StageTask(**{**task, "command": tuple(task["command"])})
        for index, task in record["tasks"].items()
    }
    # Records from before trainings could have several nodes have no time to join.
    return JobArray(**{"ray_join_seconds": 0.0, **record, "tasks": tasks})
