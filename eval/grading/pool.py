"""math-verify in worker processes that can be killed: a hard limit for each pair, bounded memory."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from eval.grading import math_verify_worker as worker

WALL_CLOCK_FACTOR = 20
"""Wall seconds that a worker may take for each processor second of the limit, on a busy machine."""
START_SECONDS = 120.0
"""Wall seconds that a worker may take to import math-verify."""


@dataclass(frozen=True)
class PoolSettings:
    """How many workers, and what each may use.

    seconds_per_pair: processor seconds of one pair, so that a busy machine does not change verdicts.
    megabytes_per_worker: address space of the process that compares.
    pairs_per_process: pairs that one process compares before a new one takes over.
    """

    workers: int
    seconds_per_pair: float
    megabytes_per_worker: int
    pairs_per_process: int

    def __post_init__(self) -> None:
        for name in ("workers", "seconds_per_pair", "megabytes_per_worker", "pairs_per_process"):
            if not getattr(self, name) > 0:
                raise ValueError(f"math-verify pool: {name} = {getattr(self, name)!r} must be above 0")


@dataclass(frozen=True)
class PoolCounts:
    """Pairs compared so far; timed out and lost (the process died) ones count as not equal."""

    compared: int = 0
    timed_out: int = 0
    lost: int = 0


class MathVerifyPool:
    """Workers that compare (gold, answer) texts with math-verify. Starts them at the first pair.

    They are separate programs, not forks, so that threads of the caller (torch's) do no harm. One caller at a
    time; others wait. Close it, or use it as a context manager.
    """

    def __init__(self, settings: PoolSettings) -> None:
        self.settings = settings
        self.counts = PoolCounts()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the workers that are running."""
        return [each.process.pid for each in self._workers]

    def close(self) -> None:
        """End the workers. In a fork of the process that started them, nothing."""
        if self._owner != os.getpid():
            return
        with self._lock:
            self._closed = True
            self._end_workers()

    def equal(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether math-verify takes each (gold, answer) pair as equal, both parsed as they stand.

        A pair over the limit, or one that ends its process, is not equal and is counted. Raises RuntimeError
        in a closed pool and when a worker does not start.
        """
        if not pairs:
            return []
        with self._lock:
            if self._closed or self._owner != os.getpid():
                raise RuntimeError(
                    "this math-verify pool is closed or belongs to another process; make a new one"
                )
            try:
                verdicts = self._compare(pairs)
            except BaseException:
                self._end_workers()
                raise
            self.counts = PoolCounts(
                self.counts.compared + len(pairs),
                self.counts.timed_out + verdicts.count(worker.TIMED_OUT),
                self.counts.lost + verdicts.count(worker.LOST),
            )
        return [verdict == worker.EQUAL for verdict in verdicts]

    def _compare(self, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
        while len(self._workers) < min(self.settings.workers, len(pairs)):
            self._workers.append(_Worker(self.settings))
        verdicts = [worker.LOST] * len(pairs)
        waiting = list(range(len(pairs) - 1, -1, -1))
        busy: dict[_Worker, int] = {}
        while waiting or busy:
            for each in self._workers:
                if each not in busy and waiting:
                    busy[each] = waiting.pop()
                    each.ask(*pairs[busy[each]])
            for each in _answered(busy):
                verdict = each.verdict()
                verdicts[busy.pop(each)] = verdict or worker.LOST
                if verdict is None:
                    self._workers[self._workers.index(each)] = _Worker(self.settings)
                    each.kill()
        return verdicts

    def _end_workers(self) -> None:
        for each in self._workers:
            each.kill()
        self._workers.clear()


class _Worker:
    """A running worker program and the pair it works on."""

    def __init__(self, settings: PoolSettings) -> None:
        self._wall_seconds = settings.seconds_per_pair * WALL_CLOCK_FACTOR
        self._is_ready = False
        self.deadline = 0.0
        limits = (settings.seconds_per_pair, settings.megabytes_per_worker, settings.pairs_per_process)
        self.process = subprocess.Popen(
            # -P: the folder of the program is no place to import from.
            [sys.executable, "-P", str(Path(worker.__file__).resolve()), *map(str, limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._questions, self.answers = self.process.stdin, self.process.stdout

    def ask(self, gold: str, answer: str) -> None:
        """Send a pair. A worker that is gone is noticed when its verdict is read."""
        if not self._is_ready:
            self._wait_until_ready()
        self.deadline = time.monotonic() + self._wall_seconds
        line = memoryview(json.dumps([gold, answer]).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[self._questions.write(line) :]

    def verdict(self) -> bytes | None:
        """The verdict that has come; None when the worker is gone or over its time."""
        ready, _, _ = select.select([self.answers], [], [], 0)
        line = self.answers.readline() if ready else b""
        return line if line in worker.VERDICTS else None

    def kill(self) -> None:
        """End the program and the process it forked."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._questions.close()
        self.answers.close()
        self.process.wait()

    def _wait_until_ready(self) -> None:
        ready, _, _ = select.select([self.answers], [], [], START_SECONDS)
        line = self.answers.readline() if ready else b""
        if line != worker.READY:
            code = self.process.poll()
            raise RuntimeError(
                f"a math-verify worker did not start (exit code {code}, limit {START_SECONDS:.0f} s); "
                f"does `{sys.executable} -c 'import math_verify'` work?"
            )
        self._is_ready = True


def _answered(busy: dict[_Worker, int]) -> list[_Worker]:
    """The workers with something to read, or past their deadline; waits until there is one."""
    while True:
        wait = max(0.0, min(each.deadline for each in busy) - time.monotonic())
        ready, _, _ = select.select([each.answers for each in busy], [], [], wait)
        now = time.monotonic()
        done = [each for each in busy if each.answers in ready or each.deadline <= now]
        if done:
            return done
