"""The results folder: space, and whether its file system keeps the promises that stages rely on."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.locks import LockHeld, acquire
from slurm.doctor.check import Check, ok
from slurm.doctor.quota import quota_check

_LITTLE = 5e9
"""Bytes; a laptop study takes less, a 7B checkpoint with its optimizer far more."""

_FEW_FILES = 10_000


def storage_checks(root: Path, shared: Sequence[str]) -> Iterator[Check]:
    """root: the results folder, made if it is not there. shared: further folders that nodes must see."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        usage = shutil.disk_usage(root)
        files = os.statvfs(root)
    except OSError as error:
        yield Check("results folder", "fail", f"{root}: {error.strerror}", "name another: paths.root=FOLDER")
        return
    found = f"{root}: {usage.free / 1e9:.1f} of {usage.total / 1e9:.1f} GB free"
    if files.f_files:
        found += f", {files.f_favail} files"
    if usage.free < _LITTLE or (files.f_files > 0 and files.f_favail < _FEW_FILES):
        yield Check("disk space", "warn", found, "free some, or name another disk: paths.root=FOLDER")
    else:
        yield ok("disk space", found)
    yield quota_check(root)
    yield _semantics(root)
    for name in shared:
        path = Path(name)
        if path.exists():
            yield ok("shared path", name)
        else:
            yield Check("shared path", "fail", f"{name} is not there", "mount it, or correct shared_paths")


def _semantics(root: Path) -> Check:
    """Write, rename over a file, and a lock that a second taker does not get."""
    name = "files and locks"
    folder = root / f".doctor-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
        old, new = folder / "old", folder / "new"
        old.write_text("old")
        with new.open("w") as stream:
            stream.write("new")
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(old)
        if old.read_text() != "new" or new.exists():
            return Check(name, "fail", "a rename does not replace the file", "use another file system")
        with acquire(folder / "lock"):
            try:
                acquire(folder / "lock").release()
            except LockHeld:
                return ok(name, "write, fsync, rename and locks work")
        return Check(name, "fail", "two processes can take one lock", "use another file system")
    except Exception as error:
        return Check(name, "fail", str(error).splitlines()[0], "mend permissions, or use another folder")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
