"""The step log of a finished training as a frame of numbers, refused where it can't be trusted.

Logs are read column by column, and a log that passes every check that way is whole. Any other is read again
record by record, which finds the line at fault, or that there is none.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from experiments.step_log import read_steps

if TYPE_CHECKING:
    from pandas import DataFrame

STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor")
"""The timed parts of a training step, in the order in which they run; `step` is their sum."""

OPTIMISATION = ("adv", "select", "old", "ref", "update_actor")
"""The stages of a step that follow generation and reward."""

_REQUIRED = ("step", "epoch", "time", "rollout/n", "actor/updates", "tokens/total")
_MEANS = ("select/kept_per_question_mean", "actor/entropy")
"""Required too, but null in a step that has nothing to average over."""

_TIMES = ("cpu_s/", "timing_s/")
"""Prefixes of seconds, which are null where the log of another trainer does not tell them."""


class StepError(ValueError):
    """A record of a step log that can't be trusted. line: in the file, from 1; reason: why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


def is_number(value: object) -> bool:
    """Whether a value of a JSON record is a number; true and false are none, though Python adds them up."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def step_keys(clock_prefix: str) -> tuple[str, ...]:
    """The keys that every step's record must have for a study that counts this clock's seconds."""
    return (*_REQUIRED, *_MEANS, *(f"{clock_prefix}/{stage}" for stage in (*STAGES, "step")))


def read_step_frame(path: Path, clock_prefix: str) -> DataFrame:
    """One row a record of a `steps.jsonl`, its flat keys as columns; a missing or null number is NaN.

    Its values are finite, its steps without gaps, and its time runs forward; a record of step 0 may come
    first. A last line without its newline is left out, and there is no row when there is no file.
    Raises StepError for the first record that is otherwise, UserError for one that is no record.
    """
    frame = _by_columns(path, clock_prefix)
    return _by_records(path, clock_prefix) if frame is None else frame


def _by_columns(path: Path, clock_prefix: str) -> DataFrame | None:
    """The frame of a log that is whole beyond doubt, else None."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import json

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    content = content[: content.rfind(b"\n") + 1]
    try:
        # One block, so that a column's type is that of the whole file.
        options = json.ReadOptions(use_threads=False, block_size=len(content) + 1)
        table = json.read_json(io.BytesIO(content), read_options=options)
    except (pa.ArrowException, ValueError):
        return None
    known = {column.type for column in table.columns} <= {pa.int64(), pa.float64(), pa.null()}
    if not known or table.num_rows == 0 or table.num_rows != content.count(b"\n"):
        return None
    columns: dict[str, NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_numpy().astype(float, copy=False) if column.null_count else column.to_numpy()
        if np.count_nonzero(~np.isfinite(values)) != column.null_count:
            return None
        columns[name] = values
    return pd.DataFrame(columns) if _is_whole(columns, clock_prefix) else None


def _is_whole(columns: Mapping[str, NDArray[Any]], clock_prefix: str) -> bool:
    """Whether columns of finite numbers, NaN where they are missing, pass all checks of `_by_records`."""
    required = step_keys(clock_prefix)
    if not columns.keys() >= set(required):
        return False
    steps = columns["step"]
    first = steps[0]
    if first not in (0, 1) or not np.array_equal(steps, np.arange(first, first + len(steps))):
        return False
    trained = steps > 0
    if any(np.isnan(columns[key][trained]).any() for key in required):
        return False
    validations = columns.get("val/accuracy", np.empty(0))
    return not (
        (np.diff(columns["time"][trained]) < 0).any()
        or any((values < 0).any() for key, values in columns.items() if key.startswith(_TIMES))
        or (validations < 0).any()
        or (validations > 1).any()
    )


def _by_records(path: Path, clock_prefix: str) -> DataFrame:
    import pandas as pd

    records = read_steps(path)
    check_records(records, clock_prefix)
    frame = pd.DataFrame(records)
    unknown = [key for key in frame.columns if frame[key].isna().all()]
    frame[unknown] = frame[unknown].astype(float)
    return frame


def check_records(records: Sequence[Mapping[str, Any]], clock_prefix: str) -> None:
    """Raises StepError for the first record that `read_step_frame` would refuse, lines counted from 1."""
    required = step_keys(clock_prefix)
    previous, time = 0, -math.inf
    for line, record in enumerate(records, start=1):
        reason = _wrong_values(record, required if record["step"] > 0 else ())
        if not reason and record["step"] > 0:
            if record["step"] != previous + 1:
                reason = f"step {record['step']} follows step {previous}"
            elif record["time"] < time:
                reason = f"time goes back by {time - record['time']:.3g} s"
            previous, time = record["step"], record["time"]
        if reason:
            raise StepError(line, reason)


def _wrong_values(record: Mapping[str, Any], required: Sequence[str]) -> str:
    """What is wrong with the values of a step's record, "" when nothing is."""
    for key, value in record.items():
        if value is not None and not is_number(value):
            return f"{key} is {value!r}, not a number"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{key} is {value}"
    null = {
        key for key, value in record.items() if value is None and (key in _MEANS or key.startswith(_TIMES))
    }
    negative = [key for key in record if key.startswith(_TIMES) and (record[key] or 0) < 0]
    if negative:
        return f"{negative[0]} is {record[negative[0]]}: the clock went backwards"
    absent = [key for key in required if record.get(key) is None and key not in null]
    if absent:
        return f"no number for {', '.join(absent)}"
    validation = record.get("val/accuracy", 0)
    if validation is None or not 0 <= validation <= 1:
        return f"val/accuracy is {validation!r}, not within [0, 1]"
    return ""
