"""What a job runs: `python -m slurm.job FOLDER ARRAY`, one task of a submitted array.

It starts the stage as a process of its own, in that stage's Python, and stays beside it: it hands Slurm's
signals on, puts a job that was asked to save back into the queue, writes down how a stage died that could not
say it itself, and ends a training that makes no step.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from experiments.attempt import log_tail
from experiments.locks import STALE_AFTER
from experiments.run_directory import RunDirectory
from experiments.stage import EXIT_CODES, record_death
from experiments.status import StageError
from slurm.client import SlurmError, call
from slurm.ledger import JobArray, StageTask, Submission, read_submission
from slurm.verdict import KILLED_KIND, STALLED_KIND

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.5
_LOCK_RETRY_SECONDS = 10.0
_WAIT_FOR_END_SECONDS = 120.0
_ABORT_SECONDS = 10.0


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

    def run(self) -> int:
        for number in _STOP_SIGNALS:
            signal.signal(number, self._pass_on)
        give_up = time.monotonic() + STALE_AFTER + 30.0
        while True:
            code = self._run_once()
            # The lock of a node that died under this job looks alive for a while.
            if code != EXIT_CODES["locked"] or self._asked or time.monotonic() > give_up:
                break
            time.sleep(_LOCK_RETRY_SECONDS)
        if code == EXIT_CODES["preempted"]:
            self._requeue()
        return code

    def _run_once(self) -> int:
        self._process = subprocess.Popen(self.task.command, preexec_fn=_end_with_parent)
        if self._asked:
            self._process.terminate()
        stalled = self._stalled if self.task.stage == "train" and self.task.run_id else None
        code = self._wait(stalled)
        if self._asked and -code in _STOP_SIGNALS:
            # It had not started to listen yet.
            return EXIT_CODES["preempted"]
        if code < 0:
            self._record_death(KILLED_KIND, _killed(-code))
            return 128 - code
        return code

    def _wait(self, stalled: Callable[[], bool] | None) -> int:
        assert self._process is not None
        self._seen, self._since = self._last_step(), time.monotonic()
        while True:
            try:
                return self._process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if stalled is None or not stalled():
                    continue
            self._end_stalled()
            return 1

    def _stalled(self) -> bool:
        seen, now = self._last_step(), time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        return now - self._since > self.array.stall_minutes * 60

    def _end_stalled(self) -> None:
        assert self._process is not None
        # faulthandler writes into the attempt's log where every thread is.
        self._process.send_signal(signal.SIGABRT)
        try:
            self._process.wait(_ABORT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._record_death(
            STALLED_KIND,
            f"no new training step for {self.array.stall_minutes:g} minutes "
            "(cluster.slurm.stall_minutes), so the job ended it; its log ends with where every thread was",
        )

    def _last_step(self) -> tuple[int, int]:
        try:
            found = self._run.steps_path.stat()
        except OSError:
            return 0, 0
        return found.st_size, found.st_mtime_ns

    def _record_death(self, kind: str, message: str) -> None:
        if not self.task.run_id:
            return
        entry = self._run.status().get(self.task.stage)
        folder = self._run.attempt_path(self.task.stage, entry.attempt if entry else 1)
        record_death(self._run, self.task.stage, StageError(kind, message, log_tail(folder)))

    @property
    def _run(self) -> RunDirectory:
        return RunDirectory(self.submission.root / "runs" / self.task.run_id)

    def _requeue(self) -> None:
        """Go back into the queue, unless Slurm is ending or requeueing this job by itself."""
        restarts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        if restarts >= self.array.max_requeues:
            print(f"requeued {restarts} times already (cluster.slurm.max_requeues); submit again to go on")
            return
        # SLURM_JOB_ID of one task is the number of the whole array.
        job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
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


def _end_with_parent() -> None:
    """Ask Linux to end this process when the job's own is killed: no stage runs on without its job."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _killed(number: int) -> str:
    name = signal.Signals(number).name
    hint = "; SIGKILL often means that memory ran out" if number == signal.SIGKILL else ""
    return f"its process was ended by {name}{hint}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
