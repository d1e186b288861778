"""What the readers of foreign logs share: what they return, and how a step becomes a record of ours."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.errors import UserError

_FIRST_KEY = b'{"step"'
_STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor")


@dataclass(frozen=True)
class StepSizes:
    """What a log may not tell of a step: rollouts a question, questions, and optimizer updates."""

    n: int
    questions: int
    updates: int


@dataclass(frozen=True)
class ForeignLog:
    """A run's records in our schema, the files that they come from, and settings found beside them."""

    steps: tuple[Mapping[str, Any], ...]
    files: tuple[Path, ...]
    learning_rate: float | None
    epochs: int | None


@dataclass(frozen=True)
class Entry:
    """What a log says of a step in one place. line: where that begins. metrics: by flat keys with slashes."""

    line: int
    step: int
    metrics: Mapping[str, Any]


WHOLE_STEP = "timing_s/step"
"""The key that an entry of EasyR1 or verl has when it tells of a training step, not of a validation alone."""

Reader = Callable[[Path, StepSizes | None], ForeignLog]
"""Reads a folder; the sizes are those that the user gave, None when the log is to tell them."""


def step_record(
    step: int,
    epoch: int,
    seconds: Mapping[str, float | None],
    besides: Mapping[str, float],
    sizes: StepSizes,
    response_tokens: float | None,
    metrics: Mapping[str, float | None],
) -> dict[str, Any]:
    """One step in our schema, without its `time`.

    seconds: by stage, None where the log does not tell them; `step` where it tells only that. besides:
    seconds of validation and checkpoints. response_tokens: mean length of a response. metrics: further
    keys of ours; those that are None are left out, entropy excepted, which every step has.
    """
    known = {stage: seconds.get(stage) for stage in _STAGES}
    whole = seconds["step"] if "step" in seconds else _total(known)
    trajectories = sizes.n * sizes.questions
    record: dict[str, Any] = {"step": step, "epoch": epoch}
    record |= {f"timing_s/{stage}": value for stage, value in known.items()}
    record |= {f"timing_s/{name}": value for name, value in besides.items()}
    record |= {
        "timing_s/step": whole,
        "rollout/n": sizes.n,
        "rollout/questions": sizes.questions,
        "rollout/trajectories": trajectories,
        "select/kept": trajectories,
        "select/kept_per_question_mean": float(sizes.n),
        "actor/updates": sizes.updates,
        "actor/entropy": metrics.get("actor/entropy"),
    }
    generated = round((response_tokens or 0.0) * trajectories)
    scored = sum(1 for stage in ("old", "ref") if known[stage])
    record |= {
        "tokens/generated": generated,
        "tokens/trained": generated,
        "tokens/total": generated * (2 + scored),
    }
    return record | {key: value for key, value in metrics.items() if value is not None}


def metrics_by_step(entries: Iterable[Entry]) -> dict[int, dict[str, Any]]:
    """What a log says of each step, by step.

    A validation adds to its step, and is left out when that step's training is not in the log (step 0 has
    none). A training step that comes again is that of a run which was resumed: what was logged before of it
    and of later steps is left out.
    """
    by_step: dict[int, dict[str, Any]] = {}
    for entry in entries:
        if WHOLE_STEP in entry.metrics and entry.step <= max(by_step, default=-1):
            by_step = {step: metrics for step, metrics in by_step.items() if step < entry.step}
        by_step[entry.step] = {**by_step.get(entry.step, {}), **entry.metrics}
    return {step: by_step[step] for step in sorted(by_step) if step == 0 or WHOLE_STEP in by_step[step]}


def is_json_lines(path: Path) -> bool:
    """Whether a file holds an object a line, rather than what a console showed."""
    if path.suffix == ".jsonl":
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(len(_FIRST_KEY)) == _FIRST_KEY
    except OSError as error:
        raise _unreadable(path, error) from None


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers; a last line that was cut off is left out.

    Raises UserError naming the line of one that is no object with a whole number `step`.
    """
    content = _text(path)
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if not line.endswith("\n"):
                return
            raise damaged(path, number, f"it is no JSON: {error}") from None
        if not isinstance(record, dict) or type(record.get("step")) is not int or record["step"] < 0:
            raise damaged(path, number, "it is no object with a whole number `step`")
        yield number, record


def json_object(path: Path) -> dict[str, Any]:
    """What a JSON file holds. Raises UserError when it is missing, damaged or no object."""
    try:
        record = json.loads(_text(path))
    except ValueError as error:
        raise damaged(path, 1, f"it is no JSON: {error}") from None
    if not isinstance(record, dict):
        raise damaged(path, 1, "it is no object")
    return record


def number(metrics: Mapping[str, Any], *keys: str) -> float | None:
    """The first of some keys that holds a finite number, None when none does."""
    for key in keys:
        value = metrics.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def accuracy(metrics: Mapping[str, Any], *keys: str) -> float | None:
    """The first of some keys that holds a number, NaN too, which is refused later and not left out."""
    for key in keys:
        value = metrics.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def damaged(path: Path, line: int, reason: str) -> UserError:
    """An error for a log that can't be read."""
    return UserError(f"The log can't be read: {reason}.", f"{path}, line {line}", "mend the line", 1)


def no_sizes(trainer: str, where: Path) -> UserError:
    """An error for a log that does not tell a step's sizes."""
    return UserError(
        f"A log of {trainer} does not tell the sizes of a step.",
        str(where),
        "add rollouts=N (a question), questions=N and updates=N (a step)",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> UserError:
    return UserError(f"The log can't be read: {error}.", str(path), "name the folder of the logs", 1)


def _total(seconds: Mapping[str, float | None]) -> float | None:
    values = [value for value in seconds.values() if value is not None]
    return sum(values) if values else None
