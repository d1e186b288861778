"""Expected GPU-hours of stages, from measured runs of like cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from experiments.errors import UserError
from experiments.plan import Cell, Plan
from experiments.run_directory import RunDirectory


@dataclass(frozen=True)
class Expectation:
    """gpu_hours: of the stages that could be estimated. known: how many. unknown: how many could not."""

    gpu_hours: float
    known: int
    unknown: int

    def __str__(self) -> str:
        if not self.known:
            return "unknown: no cell like these has been run under this results folder"
        rest = f", and {self.unknown} stages of which nothing like has been run" if self.unknown else ""
        return f"{self.gpu_hours:.2f} for {self.known} stages, as measured on like cells{rest}"


def expected_gpu_hours(plan: Plan, root: Path, stages: Iterable[tuple[Cell, str, int]]) -> Expectation:
    """stages: each with the GPUs of its job.

    Like cells are those of the same arm; without one, those of the same model, data set and engine.
    """
    arms: dict[tuple[str, str], list[float]] = {}
    kinds: dict[tuple[str, str, str, str], list[float]] = {}
    for cell in plan.cells:
        for stage, seconds in _measured(RunDirectory(root / "runs" / cell.run_id)).items():
            arms.setdefault((cell.arm, stage), []).append(seconds)
            kinds.setdefault((*_kind(cell), stage), []).append(seconds)
    hours, known, unknown = 0.0, 0, 0
    for cell, stage, gpus in stages:
        like = arms.get((cell.arm, stage)) or kinds.get((*_kind(cell), stage))
        if like is None:
            unknown += 1
            continue
        known += 1
        hours += gpus * fmean(like) / 3600
    return Expectation(hours, known, unknown)


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.model, cell.dataset, cell.engine


def _measured(run: RunDirectory) -> Mapping[str, float]:
    """Seconds of the finished stages of a run."""
    seconds = {}
    for stage, entry in run.status().items():
        if entry.state != "done":
            continue
        if stage == "train":
            steps = run.steps()
            if len(steps) > 1:
                pace = (steps[-1]["time"] - steps[0]["time"]) / (len(steps) - 1)
                seconds[stage] = pace * len(steps)
            continue
        try:
            results = run.results(stage.partition("-")[2]) or {}
        except UserError:
            continue
        if isinstance(results.get("seconds"), int | float):
            seconds[stage] = float(results["seconds"])
    return seconds
