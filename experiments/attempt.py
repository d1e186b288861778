"""What surrounds one attempt of a stage: where its output goes, what stops it, how it shows that it lives."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TextIO

from experiments.atomic_files import WriteError
from experiments.locks import Lock, LockHeld, LockLost
from experiments.status import StageStatus, State, write_entry

_TAIL_LINES = 20
_TAIL_BYTES = 8192


@contextlib.contextmanager
def output_to(folder: Path) -> Iterator[None]:
    """Send all that the process prints, native libraries too, to stdout.log and stderr.log of a folder."""
    streams = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        for stream in streams:
            stream.flush()
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            log = (folder / f"{name}.log").open("a", buffering=1, encoding="utf-8")
            stack.callback(_close, log)
            saved = os.dup(descriptor)
            stack.callback(_restore, saved, descriptor)
            os.dup2(log.fileno(), descriptor)
            stack.callback(setattr, sys, name, getattr(sys, name))
            setattr(sys, name, log)
        yield


def log_tail(folder: Path) -> str:
    """The last lines that an attempt wrote to stderr.log, or to stdout.log when that is empty."""
    for name in ("stderr.log", "stdout.log"):
        with contextlib.suppress(FileNotFoundError), (folder / name).open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", errors="replace").splitlines()
            if lines:
                return "\n".join(lines[-_TAIL_LINES:])
    return ""


class StopRequest:
    """Whether a stage has been asked to save and end, and the state in which it then ends."""

    def __init__(self) -> None:
        self.state: State | None = None

    def __call__(self) -> bool:
        return self.state is not None

    def ask(self, state: State) -> None:
        """Ask for a stop; the first one who asks decides the state."""
        if self.state is None:
            self.state = state

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """SIGTERM and SIGUSR2 ask for `preempted`, SIGINT for `interrupted`.

        A second SIGINT ends the stage at once. Signals held back until now count. The main thread alone may
        use it.
        """
        handlers = {
            signal.SIGTERM: self._preempt,
            signal.SIGUSR2: self._preempt,
            signal.SIGINT: self._interrupt,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _preempt(self, number: int, frame: FrameType | None) -> None:
        self.ask("preempted")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.state == "interrupted":
            raise KeyboardInterrupt
        self.ask("interrupted")


class Heartbeat:
    """A thread that touches the stage's lock and renews `heartbeat` in status.json until it is stopped.

    `lost` tells that another process took the lock over; `on_lost` is called then.
    """

    def __init__(
        self,
        lock: Lock,
        status: Path,
        stage: str,
        entry: StageStatus,
        seconds: float,
        on_lost: Callable[[], None],
    ) -> None:
        self.lost = False
        self._lock, self._status, self._stage, self._entry = lock, status, stage, entry
        self._seconds, self._on_lost = seconds, on_lost
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._lock.touch()
                write_entry(self._status, self._stage, replace(self._entry, heartbeat=time.time()))
            except LockLost as error:
                print(f"Stopping: {error}", file=sys.stderr)
                self.lost = True
                self._on_lost()
                return
            except (LockHeld, WriteError, OSError) as error:
                # One beat missed is harmless: others wait for many before they take the stage over.
                print(f"The heartbeat could not be written: {error}", file=sys.stderr)


def _close(log: TextIO) -> None:
    # On a full disk the rest of the log can't be written; what the stage raised matters, not this.
    with contextlib.suppress(OSError):
        log.close()


def _restore(saved: int, descriptor: int) -> None:
    os.dup2(saved, descriptor)
    os.close(saved)


def report(stream: TextIO, message: str) -> None:
    """Print a message with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=stream, flush=True)
