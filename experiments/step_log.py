"""`steps.jsonl`: one flat JSON object per finished training step, appended by the one holder of the stage."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.atomic_files import append_line, write_file
from experiments.errors import UserError


def append_step(path: Path, record: Mapping[str, Any]) -> None:
    """Append a step's record as one line.

    Raises ValueError for a value that is NaN or infinite (naming its key), WriteError when the disk is full.
    """
    for key, value in record.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(
                f"{key} is {value} at step {record['step']}, so the step is not recorded in {path}; training "
                "has usually diverged: lower the learning rate, or clip gradients harder"
            )
    append_line(path, json.dumps(record, ensure_ascii=False, allow_nan=False))


def read_steps(path: Path) -> list[dict[str, Any]]:
    """Every whole record, oldest first; an empty list when there is no file.

    A last line without its newline is a record being written, or one whose writer was killed: it is left out.
    Raises UserError naming file and line for a record that can't be read or is out of order.
    """
    return [record for record, _ in _records(path)]


def cut_back(path: Path, step: int) -> int:
    """Drop every record after `step`, so that training can go on from its checkpoint; returns how many.

    `step` 0 means that there is no checkpoint: nothing is kept. What follows the kept records may be damaged.
    Raises UserError when the log ends before `step`, or a record up to it can't be read.
    """
    if not path.exists():
        if step > 0:
            raise _log_ends_early(path, 0, step)
        return 0
    content = path.read_bytes()
    end, last = 0, 0
    if step > 0:
        for record, line_end in _records(path):
            if record["step"] > step:
                break
            end, last = line_end, record["step"]
            if last == step:
                break
        if last < step:
            raise _log_ends_early(path, last, step)
    dropped = content.count(b"\n", end)
    if end < len(content):
        write_file(path, content[:end])
    return dropped


def _records(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Each whole record and the offset at which its line ends."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    start, previous = 0, -1
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            return
        start += len(line)
        record = _parsed(path, number, line)
        if record["step"] <= previous:
            raise _damaged(path, number, f"step {record['step']} follows step {previous}")
        previous = record["step"]
        yield record, start


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _damaged(path, number, str(error)) from None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        raise _damaged(path, number, "it is not an object with a whole number `step`")
    return record


def _damaged(path: Path, number: int, reason: str) -> UserError:
    return UserError(
        f"A record of the step log can't be read: {reason}.",
        f"{path}, line {number}",
        f"restore the file from a copy, or delete the run's folder ({path.parent}) and train it again",
        exit_code=1,
    )


def _log_ends_early(path: Path, last: int, step: int) -> UserError:
    return UserError(
        f"The checkpoint is of step {step}, but the step log ends at step {last}.",
        str(path),
        f"restore the file from a copy, or delete the run's folder ({path.parent}) and train it again",
        exit_code=1,
    )
