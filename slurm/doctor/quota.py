"""The user's quota on the file system of a folder, where a command of the system tells it."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from pathlib import Path

from slurm.doctor.check import Check, ok

_SECONDS = 20.0
_NAME = "quota"
_FULL = 0.9
"""Share of a limit from which on it is worth a warning."""

_WAY_OUT = "free some, ask your site for more, or name another folder: paths.root=FOLDER"


def quota_check(folder: Path) -> Check:
    """Space and files used of their limits; a warning that says so when nothing here knows."""
    mount = _mount_of(folder)
    user = getpass.getuser()
    # Both print the same columns. -w, -q: a line a file system; -p: times as numbers, so that none is empty.
    commands = [["lfs", "quota", "-q", "-u", user, str(mount)], ["quota", "-w", "-p", "-f", str(mount)]]
    present = [command for command in commands if shutil.which(command[0])]
    for command in present:
        if (line := _answer(command)) is not None:
            return _judged(mount, line)
    tried = ", ".join(command[0] for command in present)
    found = f"unknown: {tried} gave no figures for {mount}" if tried else "unknown: no quota command here"
    return Check(_NAME, "warn", found, "ask your site whether the results folder has one")


def _mount_of(folder: Path) -> Path:
    folder = folder.resolve()
    return next(path for path in (folder, *folder.parents) if os.path.ismount(path))


def _answer(command: list[str]) -> list[int] | None:
    """Used, soft and hard limit of space (KB), then of files; 0 for no limit. None without an answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in done.stdout.splitlines():
        words = line.split()
        numbers = [word.rstrip("*") for word in (*words[1:4], *words[5:8])]
        if len(words) == 9 and all(number.isdigit() for number in numbers):
            return [int(number) for number in numbers]
    return None


def _judged(mount: Path, figures: list[int]) -> Check:
    parts, level = [], "ok"
    for (used, soft, hard), unit, size in ((figures[:3], "GB", 1e-6), (figures[3:], "files", 1.0)):
        limit = hard or soft
        shown = f"{used * size:.1f}" if unit == "GB" else str(used)
        if not limit:
            parts.append(f"{shown} {unit}, no limit")
            continue
        of = f"{limit * size:.1f}" if unit == "GB" else str(limit)
        parts.append(f"{shown} of {of} {unit}")
        if used >= limit:
            level = "fail"
        elif used >= _FULL * (soft or hard) and level == "ok":
            level = "warn"
    found = f"{mount}: {'; '.join(parts)}"
    if level == "ok":
        return ok(_NAME, found)
    return Check(_NAME, "fail" if level == "fail" else "warn", found, _WAY_OUT)
