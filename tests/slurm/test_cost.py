"""Expected GPU-hours: measured ones of like cells first, then derived ones, and never one sum of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from rehearsal import EVALUATE, TRAIN, cell_config, study

from experiments.plan import Cell
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus, write_entry
from experiments.step_log import append_step
from slurm.cost import expected_gpu_hours

PLAN, BY_ID = study([cell_config(seed) for seed in range(3)])
STAGES = [(cell, stage, 4) for cell in PLAN.cells[1:] for stage in (TRAIN, EVALUATE)]


def nothing(cell: Cell, stage: str) -> None:
    return None


def hours_of_trainings(cell: Cell, stage: str) -> float | None:
    return 30.0 if stage == TRAIN else None


def test_without_runs_and_published_times_they_are_unknown(tmp_path: Path) -> None:
    assert str(expected_gpu_hours(PLAN, tmp_path, STAGES, nothing)).startswith("unknown")


def test_published_times_are_said_to_be_derived(tmp_path: Path) -> None:
    shown = str(expected_gpu_hours(PLAN, tmp_path, STAGES, hours_of_trainings))
    assert shown == "60 for 2 stages, derived from published times; unknown for 2 stages"


def test_a_finished_run_of_a_like_cell_comes_before_published_times(tmp_path: Path) -> None:
    first = PLAN.cells[0].run_id
    run = RunDirectory.create(tmp_path, first, BY_ID[first])
    for step in range(1, 11):
        append_step(run.steps_path, {"step": step, "time": 1000.0 + 90 * step})
    write_entry(run.status_path, TRAIN, StageStatus("done", 1, 0.0, 0.0, "node1", 1, None, None))
    expected = expected_gpu_hours(PLAN, tmp_path, STAGES, hours_of_trainings)
    assert expected.measured == pytest.approx((1.0, 1.0))
    assert str(expected) == "2.00 for 2 stages, as measured on like cells; unknown for 2 stages"
