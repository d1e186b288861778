"""Expected GPU-hours of stages: from measured runs of like cells, else derived from published times."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from experiments.errors import UserError
from experiments.plan import Cell, Plan
from experiments.run_directory import RunDirectory


@dataclass(frozen=True)
class Expectation:
    """measured, derived: GPU-hours of the stages of which like cells were run, and of those that published
    times say something of; never added up. unknown: how many stages are neither."""

    measured: tuple[float, ...]
    derived: tuple[float, ...]
    unknown: int

    def __str__(self) -> str:
        if not (self.measured or self.derived):
            return "unknown: no cell like these has been run under this results folder"
        parts = []
        if self.measured:
            hours = f"{sum(self.measured):.2f} for {len(self.measured)} stages"
            parts.append(f"{hours}, as measured on like cells")
        if self.derived:
            hours = f"{sum(self.derived):,.0f} for {len(self.derived)} stages"
            parts.append(f"{hours}, derived from published times")
        if self.unknown:
            parts.append(f"unknown for {self.unknown} stages")
        return "; ".join(parts)


def expected_gpu_hours(
    plan: Plan,
    root: Path,
    stages: Iterable[tuple[Cell, str, int]],
    derive: Callable[[Cell, str], float | None],
) -> Expectation:
    """stages: each with the GPUs of its job. derive: GPU-hours of a stage by published times, if any.

    Like cells are those of the same arm; without one, those of the same model, data set and engine.
    """
    arms: dict[tuple[str, str], list[float]] = {}
    kinds: dict[tuple[str, str, str, str], list[float]] = {}
    for cell in plan.cells:
        for stage, seconds in _measured(RunDirectory(root / "runs" / cell.run_id)).items():
            arms.setdefault((cell.arm, stage), []).append(seconds)
            kinds.setdefault((*_kind(cell), stage), []).append(seconds)
    measured, derived, unknown = [], [], 0
    for cell, stage, gpus in stages:
        like = arms.get((cell.arm, stage)) or kinds.get((*_kind(cell), stage))
        if like is not None:
            measured.append(gpus * fmean(like) / 3600)
        elif (hours := derive(cell, stage)) is not None:
            derived.append(hours)
        else:
            unknown += 1
    return Expectation(tuple(measured), tuple(derived), unknown)


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.model, cell.dataset, cell.engine


def _measured(run: RunDirectory) -> Mapping[str, float]:
    """Seconds of the finished stages of a run, as far as its records can be read."""
    seconds = {}
    with contextlib.suppress(UserError):
        for stage, entry in run.status().items():
            if entry.state != "done":
                continue
            with contextlib.suppress(UserError):
                found = _seconds(run, stage)
                if found is not None:
                    seconds[stage] = found
    return seconds


def _seconds(run: RunDirectory, stage: str) -> float | None:
    """What a finished stage took, None where its record does not tell. Raises UserError for a damaged one."""
    if stage == "train":
        steps = run.steps()
        if len(steps) < 2:
            return None
        pace: float = (steps[-1]["time"] - steps[0]["time"]) / (len(steps) - 1)
        return pace * len(steps)
    found = (run.results(stage.partition("-")[2]) or {}).get("seconds")
    return float(found) if isinstance(found, int | float) else None
