"""`status.json`: what is known of each stage of a run; it wins over what a scheduler says."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from experiments.atomic_files import write_json
from experiments.errors import UserError
from experiments.locks import acquire_within

State = Literal["pending", "running", "done", "failed", "preempted", "interrupted"]
_MUTEX_SECONDS = 60.0


@dataclass(frozen=True)
class StageError:
    """Why an attempt failed: the exception's class and message, and the last lines of the attempt's log."""

    kind: str
    message: str
    log_tail: str


@dataclass(frozen=True)
class StageStatus:
    """One stage's entry.

    attempt: 1-based. updated, heartbeat: unix seconds of the last change of state and the last sign of life.
    """

    state: State
    attempt: int
    updated: float
    heartbeat: float
    host: str
    pid: int
    slurm_job_id: str | None
    error: StageError | None


def read_status(path: Path) -> dict[str, StageStatus]:
    """Entries by stage name; empty when there is no file. Raises UserError naming file and line of damage."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {stage: _entry(fields) for stage, fields in record.items()}
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise _damaged(f"{path}, line {error.lineno}", error.msg) from None
    except (UnicodeDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(str(path), f"{type(error).__name__}: {error}") from None


def write_entry(path: Path, stage: str, entry: StageStatus) -> None:
    """Replace one stage's entry and leave the others, which other processes may be writing, as they are."""
    with acquire_within(path.parent / "locks" / "status.lock", _MUTEX_SECONDS):
        entries = {**read_status(path), stage: entry}
        write_json(path, {name: asdict(each) for name, each in sorted(entries.items())})


def changed(entry: StageStatus, state: State, error: StageError | None = None) -> StageStatus:
    """The entry in another state, as of now."""
    now = time.time()
    return replace(entry, state=state, error=error, updated=now, heartbeat=now)


def _entry(fields: Mapping[str, Any]) -> StageStatus:
    if fields["state"] not in get_args(State):
        raise ValueError(f"there is no state {fields['state']!r}")
    error = StageError(**fields["error"]) if fields["error"] else None
    return StageStatus(**{**fields, "error": error})


def _damaged(where: str, reason: str) -> UserError:
    return UserError(
        f"The status file can't be read: {reason}.",
        where,
        "delete it and run the same command again: stages resume from their own files, nothing is lost",
        exit_code=1,
    )
