"""Lock files: at most one process works on a thing, also across machines that share a file system.

A lock is a file that appears with all its content in one step (a hard link, atomic on NFS too); `flock` is
not needed. Its holder touches it every few seconds. A lock whose process has died may be taken over: on the
same host when the process is gone (its start time tells it from a later one with the same pid), on another
host when the file has not been touched for a while. Of several takers one wins: taking over a dead lock needs
a lock of its own, named after the dead one's token.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.atomic_files import draft_path, file_system_time, write_error
from experiments.errors import UserError

STALE_AFTER = 120.0
"""Seconds without a touch after which the lock of another host counts as dead."""

_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, since when (unix s). process_start tells it from a later process with that pid."""

    host: str
    pid: int
    process_start: str
    job_id: str | None
    since: float
    token: str

    def __str__(self) -> str:
        job = f", Slurm job {self.job_id}" if self.job_id else ""
        return f"process {self.pid} on {self.host}{job}"


class LockHeld(Exception):
    """Another live process holds the lock. holder is None while a lock is being written."""

    def __init__(self, path: Path, holder: Holder | None) -> None:
        super().__init__(f"{path} is held by {holder or 'a process that is just taking it'}")
        self.path = path
        self.holder = holder


class LockLost(Exception):
    """The lock was taken over, because this process did not touch it for too long."""


@dataclass(frozen=True)
class Lock:
    """A lock that this process holds; as a context manager it releases itself."""

    path: Path
    holder: Holder

    def touch(self) -> None:
        """Show that the holder lives. Raises LockLost when the lock is no longer this one."""
        held = _read(self.path)
        if held is None or held.token != self.holder.token:
            raise LockLost(f"{self.path} was taken over by {held or 'nobody, it is gone'}")
        os.utime(self.path)

    def release(self) -> None:
        """Give the lock up; does nothing when it was lost."""
        held = _read(self.path)
        if held is not None and held.token == self.holder.token:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


def acquire(path: Path, stale_after: float = STALE_AFTER) -> Lock:
    """Take a lock, also from a dead holder.

    Raises LockHeld when a live process has it, WriteError when the file can't be written.
    """
    lock = Lock(path, this_process())
    draft = draft_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(dataclasses.asdict(lock.holder)), encoding="utf-8")
        now = draft.stat().st_mtime
        while not _create(draft, path):
            held, touched = _read(path), _touched(path)
            if touched is None:
                continue
            if not _is_dead(held, touched, lambda: now, stale_after):
                raise LockHeld(path, held)
            if _take_over(draft, path, held, stale_after):
                break
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return lock


def acquire_within(path: Path, seconds: float, stale_after: float = STALE_AFTER) -> Lock:
    """Take a lock that others hold for moments only; raises LockHeld after waiting for so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return acquire(path, stale_after)
        except LockHeld:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002 + 0.02 * secrets.randbelow(1000) / 1000)


def acquire_patiently(path: Path, seconds: float, doing: str) -> Lock:
    """As `acquire_within`, but raises a UserError with what another process has been doing under the lock."""
    try:
        return acquire_within(path, seconds)
    except LockHeld as held:
        raise UserError(
            f"Another process has been {doing} for {seconds:.0f} s: {held.holder or 'a new one'}.",
            str(path),
            "wait for it, or end it (one that was killed on another machine counts for two minutes), then "
            "run the same command again",
            exit_code=1,
        ) from None


def live_holder(
    path: Path, stale_after: float = STALE_AFTER, now: Callable[[], float] | None = None
) -> Holder | None:
    """Who holds a lock now; None when nobody does or its holder is dead.

    now: as `file_system_time` gives it, for who looks at many locks; None to ask for this one.
    """
    held, touched = _read(path), _touched(path)
    if held is None or touched is None:
        return None
    clock = now or (lambda: file_system_time(path.parent))
    return None if _is_dead(held, touched, clock, stale_after) else held


def this_process() -> Holder:
    """A holder record of the calling process, with a fresh token."""
    return Holder(
        host=socket.gethostname(),
        pid=os.getpid(),
        process_start=process_start(os.getpid()) or "",
        job_id=os.environ.get("SLURM_JOB_ID"),
        since=time.time(),
        token=secrets.token_hex(4),
    )


def process_start(pid: int) -> str | None:
    """When a process of this host started, as a text that is the same at every call; None when it is gone."""
    if Path("/proc/self/stat").exists():
        try:
            fields = (
                Path(f"/proc/{pid}/stat")
                .read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()
            )
        except OSError:
            return None
        zombie = fields[0] in ("Z", "X")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")[:8]
        return None if zombie else f"{boot}-{fields[19]}"
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or None


def _create(draft: Path, path: Path) -> bool:
    """Make `path` appear with the draft's content, only if nothing stands there."""
    try:
        os.link(draft, path)
        return True
    except FileExistsError:
        # An NFS server may do the link and lose the answer: two names then stand for the draft.
        return draft.stat().st_nlink == 2
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
    try:
        with path.open("xb") as stream:
            stream.write(draft.read_bytes())
        return True
    except FileExistsError:
        return False


def _take_over(draft: Path, path: Path, dead: Holder | None, stale_after: float) -> bool:
    """Replace a dead lock by the draft; False when it is gone by now, LockHeld if another taker is at it."""
    token = dead.token if dead else "unreadable"
    with acquire(path.with_name(f"{path.name}.after-{token}"), stale_after):
        if _read(path) != dead or not path.exists():
            return False
        draft.replace(path)
        return True


def _is_dead(holder: Holder | None, touched: float, now: Callable[[], float], stale_after: float) -> bool:
    """now: by the file system's own clock, which also stamps the touches of holders on other hosts."""
    if holder is not None and holder.host == socket.gethostname():
        return process_start(holder.pid) != holder.process_start
    return now() - touched > stale_after


def _read(path: Path) -> Holder | None:
    """The record in a lock file; None without a file, or while it is being written without hard links."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return None


def _touched(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None
