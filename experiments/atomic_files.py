"""Writing files so that a reader, or the next attempt, never finds half of one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.errors import UserError

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk, an exhausted quota and a file size limit."""

_DRAFT_SUFFIX = ".draft"


class WriteError(UserError):
    """A file could not be written; what stood there before is as it was."""


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file by write-and-rename, creating its folder; text is UTF-8.

    Raises WriteError naming the file; the old content, or the file's absence, is then untouched.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    draft = draft_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a mapping as indented JSON by write-and-rename. Raises WriteError, and ValueError on NaN."""
    write_file(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def append_line(path: Path, line: str) -> None:
    """Append one whole line to a file and flush it to the disk; one process at a time may do so.

    Raises WriteError naming the file, which is then as it was before.
    """
    data = line.encode("utf-8") + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        before = os.fstat(descriptor).st_size
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, before)
            raise write_error(path, error) from error
    finally:
        os.close(descriptor)


def draft_path(path: Path) -> Path:
    """A fresh hidden name beside `path`, for a file that is renamed to it once whole."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{_DRAFT_SUFFIX}")


def remove_old_drafts(folder: Path, older_than: float) -> None:
    """Delete the drafts that killed processes left in a folder, when so many seconds old."""
    limit = file_system_time(folder) - older_than
    for draft in folder.glob(f".*{_DRAFT_SUFFIX}"):
        with contextlib.suppress(OSError):
            if draft.stat().st_mtime <= limit:
                draft.unlink()


def file_system_time(folder: Path) -> float:
    """Now (unix s) by the clock that stamps the files of a folder; on a shared disk that is its server's.

    Times of files are to be compared with it, for this machine's own clock may differ. It is that one where
    nothing can be written.
    """
    draft = draft_path(folder / "clock")
    try:
        draft.touch()
        return draft.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def write_error(path: Path, error: OSError) -> WriteError:
    """What to tell the user about a failed write: a full disk, or the system's own reason."""
    if error.errno in NO_SPACE:
        return WriteError(
            f"There is no space left to write {path.name}{_free_space(path)}.",
            str(path),
            "free some space, or choose another disk with paths.root=FOLDER, then run the same command "
            "again; nothing is half-written and finished work is kept",
            exit_code=1,
        )
    return WriteError(
        f"{path.name} can't be written: {error.strerror or error}.",
        str(path),
        "mend the folder's permissions or its mount, or choose another one with paths.root=FOLDER, then run "
        "the same command again",
        exit_code=1,
    )


def _free_space(path: Path) -> str:
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(path.parent)
        free = f"{usage.free / 1e6:.1f} MB of {usage.total / 1e6:.0f} MB free"
        return f" ({free}, or a quota or size limit is reached)"
    return ""
