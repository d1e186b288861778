"""How far a cell is, read from its run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from experiments.errors import UserError
from experiments.plan import Cell
from experiments.run_directory import RunDirectory

_RECENT_STEPS = 10


@dataclass(frozen=True)
class CellProgress:
    """state: what the cell is doing, in a word. steps: of the whole training, None before its first start.

    accuracy: the latest validation accuracy. kept: trajectories kept per question in the latest step.
    step_seconds: mean work of recent steps. seconds_left: of training, from the wall-clock of recent steps.
    """

    label: str
    seed: int
    state: str
    step: int
    steps: int | None
    accuracy: float | None
    kept: float | None
    step_seconds: float | None
    seconds_left: float | None


def cell_progress(run: RunDirectory, cell: Cell, state: str) -> CellProgress:
    """Read a run's step log and provenance; a run that has not started, or is damaged, shows nothing."""
    try:
        records = run.steps()
        provenance = run.provenance() or {}
    except UserError:
        # The stage that uses the file reports the damage; a view of other cells must not end on it.
        records, provenance = [], {}
    last = records[-1] if records else {}
    step, steps = last.get("step", 0), provenance.get("steps")
    return CellProgress(
        label=cell.label,
        seed=cell.seed,
        state=state,
        step=step,
        steps=steps,
        accuracy=_latest(records, "val/accuracy"),
        kept=last.get("select/kept_per_question_mean"),
        step_seconds=_mean([record.get("timing_s/step") for record in records[-_RECENT_STEPS:]]),
        seconds_left=None if steps is None else _seconds_left(records[-_RECENT_STEPS:], steps - step),
    )


def _latest(records: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values: list[float] = [record[key] for record in records if record.get(key) is not None]
    return values[-1] if values else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _seconds_left(recent: Sequence[Mapping[str, Any]], steps: int) -> float | None:
    """From the median time between records, which the pause before a resumed attempt does not disturb."""
    if len(recent) < 2:
        return None
    seconds: float = statistics.median(after["time"] - before["time"] for before, after in pairwise(recent))
    return steps * seconds
