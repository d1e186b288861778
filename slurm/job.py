"""What a job runs: `python -m slurm.job FOLDER ARRAY`, one task of a submitted array.

It starts the stage as a process of its own, in that stage's Python, and stays beside it: it hands Slurm's
signals on, puts a job that was asked to save back into the queue, writes down how a stage died that could not
say it itself, and ends one that makes no progress. A training on several nodes is given Ray on all of
them, by RAY_ADDRESS, and ends when Ray does on any.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from experiments.attempt import log_tail
from experiments.locks import STALE_AFTER
from experiments.run_directory import RunDirectory
from experiments.stage import EXIT_CODES, record_death
from experiments.status import StageError, changed, write_entry
from slurm.client import SlurmError, call
from slurm.ledger import JobArray, StageTask, Submission, read_submission
from slurm.parent_death import end_with_parent
from slurm.queue import TaskId
from slurm.ray_nodes import LostNode, RayError, RayNodes, ray_access
from slurm.verdict import KILLED_KIND, STALLED_KIND

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
_POLL_SECONDS = 0.5
_LOCK_RETRY_SECONDS = 10.0
_WAIT_FOR_END_SECONDS = 120.0
_ABORT_SECONDS = 10.0
_PROGRESS = {"train": "training step", "evaluate": "batch of responses"}
"""What a stage is watched for, by its kind."""

_SAVE_WITHOUT_RAY_SECONDS = 20.0
"""For a stage that was asked to save when Ray is gone from a node: it can save only what it holds itself."""

_RAY_NOTICE_SECONDS = 4.0
"""A stage may notice that Ray is gone from a node so much earlier than the step there has ended."""


def main(arguments: list[str]) -> int:
    folder, number = Path(arguments[0]), int(arguments[1])
    submission = read_submission(folder)
    array = next(each for each in submission.arrays if each.number == number)
    task = array.tasks[int(os.environ["SLURM_ARRAY_TASK_ID"])]
    return _Job(submission, array, task).run()


@dataclass
class _Job:
    submission: Submission
    array: JobArray
    task: StageTask

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._ray: RayNodes | None = None
        self._environment = dict(os.environ)

    def run(self) -> int:
        for number in _STOP_SIGNALS:
            signal.signal(number, self._pass_on)
        try:
            code = self._run_on_all_nodes() if self._has_several_nodes() else self._run_until_unlocked()
        except (RayError, SlurmError) as error:
            # Its last line is what `fastrl status` shows of a stage that could not start.
            print(f"{error}\n{error.what}", file=sys.stderr, flush=True)
            return EXIT_CODES["failed"]
        if code == EXIT_CODES["preempted"]:
            self._requeue()
        return code

    def _has_several_nodes(self) -> bool:
        return self.task.stage == "train" and int(os.environ.get("SLURM_JOB_NUM_NODES", "1")) > 1

    def _run_on_all_nodes(self) -> int:
        self._environment |= ray_access(self._environment)
        self._ray = RayNodes(
            self.task.command[0],
            lambda node: self.submission.node_log(self._task_id, node),
            self.array.ray_join_seconds,
            self._environment,
        )
        try:
            address = self._ray.start(lambda: self._asked)
            if address is None:
                return EXIT_CODES["preempted"]
            self._environment["RAY_ADDRESS"] = address
            return self._run_until_unlocked()
        finally:
            self._ray.stop()

    def _run_until_unlocked(self) -> int:
        give_up = time.monotonic() + STALE_AFTER + 30.0
        while True:
            code = self._run_once()
            # The lock of a node that died under this job looks alive for a while.
            if code != EXIT_CODES["locked"] or self._asked or time.monotonic() > give_up:
                return code
            time.sleep(_LOCK_RETRY_SECONDS)

    def _run_once(self) -> int:
        # No stage runs on without its job.
        self._process = subprocess.Popen(self.task.command, env=self._environment, preexec_fn=end_with_parent)
        if self._asked:
            self._process.terminate()
        code = self._wait()
        if code is None:
            return EXIT_CODES["failed"]
        if self._asked and -code in _STOP_SIGNALS:
            # It had not started to listen yet.
            return EXIT_CODES["preempted"]
        if code < 0:
            self._record_death(KILLED_KIND, _killed(-code))
            return 128 - code
        if code == EXIT_CODES["failed"] and self._ray is not None:
            self._record_cause(self._ray.lost_within(_RAY_NOTICE_SECONDS))
        return code

    def _wait(self) -> int | None:
        """Wait for the stage's end; its exit code. None when this job had to end it, and has said so."""
        assert self._process is not None
        watched = _PROGRESS.get(self.task.stage.partition("-")[0]) if self.task.run_id else None
        self._seen, self._since = self._progress(), time.monotonic()
        while True:
            try:
                return self._process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            if watched is not None and self._stalled():
                self._end_stalled(watched)
                return None
            if self._ray is not None and (lost := self._ray.lost()) is not None:
                return self._end_without_ray(lost)

    def _stalled(self) -> bool:
        seen, now = self._progress(), time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        return now - self._since > self.array.stall_minutes * 60

    def _end_stalled(self, awaited: str) -> None:
        self._abort()
        self._record_death(
            STALLED_KIND,
            f"no new {awaited} for {self.array.stall_minutes:g} minutes "
            "(cluster.slurm.stall_minutes), so the job ended it; its log ends with where every thread was",
        )

    def _end_without_ray(self, lost: LostNode) -> int | None:
        """End a training of which a node is gone, as `_wait` does."""
        assert self._process is not None
        if self._asked:
            try:
                return self._process.wait(_SAVE_WITHOUT_RAY_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"{lost.what}, while the stage was saving", file=sys.stderr, flush=True)
        self._abort()
        if self._asked:
            return EXIT_CODES["preempted"]
        print(lost.what, file=sys.stderr, flush=True)
        self._record_death(KILLED_KIND, lost.what, lost.log_tail)
        return None

    def _abort(self) -> None:
        assert self._process is not None
        # faulthandler writes into the attempt's log where every thread is.
        self._process.send_signal(signal.SIGABRT)
        try:
            self._process.wait(_ABORT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _progress(self) -> tuple[tuple[int, int], ...]:
        """Changes with each step of a training, and with each batch of an evaluation."""
        kind, _, benchmark = self.task.stage.partition("-")
        paths = [self._run.steps_path]
        if kind == "evaluate":
            paths = sorted(self._run.evaluation_path(benchmark).rglob("*"))
        found = []
        for path in paths:
            with contextlib.suppress(OSError):
                found.append((path.stat().st_size, path.stat().st_mtime_ns))
        return tuple(found)

    def _record_death(self, kind: str, message: str, log_end: str | None = None) -> None:
        if not self.task.run_id:
            return
        entry = self._run.status().get(self.task.stage)
        folder = self._run.attempt_path(self.task.stage, entry.attempt if entry else 1)
        error = StageError(kind, message, log_tail(folder) if log_end is None else log_end)
        record_death(self._run, self.task.stage, error)

    def _record_cause(self, lost: LostNode | None) -> None:
        """Write down that a stage failed because a node was gone, if one was; its own words follow."""
        if lost is None:
            return
        print(lost.what, file=sys.stderr, flush=True)
        entry = self._run.status().get(self.task.stage)
        if entry is None or entry.state != "failed" or entry.slurm_job_id != os.environ["SLURM_JOB_ID"]:
            return
        said = f"; the stage then failed: {entry.error.kind}: {entry.error.message}" if entry.error else ""
        error = StageError(KILLED_KIND, lost.what + said, lost.log_tail)
        write_entry(self._run.status_path, self.task.stage, changed(entry, "failed", error))

    @property
    def _task_id(self) -> TaskId:
        """SLURM_JOB_ID of one task is the number of the whole array."""
        return TaskId(os.environ["SLURM_ARRAY_JOB_ID"], int(os.environ["SLURM_ARRAY_TASK_ID"]))

    @property
    def _run(self) -> RunDirectory:
        return RunDirectory(self.submission.root / "runs" / self.task.run_id)

    def _requeue(self) -> None:
        """Go back into the queue, unless Slurm is ending or requeueing this job by itself."""
        restarts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        if restarts >= self.array.max_requeues:
            print(f"requeued {restarts} times already (cluster.slurm.max_requeues); submit again to go on")
            return
        job = str(self._task_id)
        try:
            state = call(["squeue", "-h", "-j", job, "-o", "%T"]).strip()
            if state != "RUNNING":
                return
            call(["scontrol", "requeue", job])
        except SlurmError as error:
            print(f"not requeued: {error}", file=sys.stderr)
            return
        print("saved, and back into the queue", flush=True)
        # Slurm ends this job now; ending by itself would make it a failed one.
        time.sleep(_WAIT_FOR_END_SECONDS)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _killed(number: int) -> str:
    name = signal.Signals(number).name
    hint = "; SIGKILL often means that memory ran out" if number == signal.SIGKILL else ""
    return f"its process was ended by {name}{hint}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
