"""The local driver: every cell once, in a comparable order; failures, kills and Ctrl-C stay contained."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from counting_stage import counting_config
from counting_study import counting_plan, run_counting_study, study_configs
from rich.console import Console
from rich.text import Text

from experiments.identity import run_id
from experiments.local.live_table import StudyProgress, cells_table, opened_view
from experiments.local.progress import CellProgress, cell_progress
from experiments.local.schedule import Schedule, Task, TaskState
from experiments.locks import process_start
from experiments.run_directory import RunDirectory

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]


def run_of(root: Path, config: dict[str, object]) -> RunDirectory:
    return RunDirectory(root / "runs" / run_id(config))


def start_driver(root: Path, **study: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{PROJECT}"}
    command = [sys.executable, str(HERE / "counting_study.py"), str(root), json.dumps(study)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def test_seeds_come_first_across_arms_and_evaluations_as_soon_as_they_can() -> None:
    plan = counting_plan(study_configs(arms=3, seeds=2))
    schedule = Schedule(plan.cells, lambda task: False)
    order = []
    while (task := schedule.next_task()) is not None:
        order.append((task.cell.label, task.cell.seed, task.stage))
        schedule.set(task, TaskState.DONE)
    assert order[:4] == [
        ("a", 0, "train"),
        ("a", 0, "evaluate-geometry"),
        ("b", 0, "train"),
        ("b", 0, "evaluate-geometry"),
    ]
    assert [(label, seed) for label, seed, stage in order if stage == "train"] == [
        ("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("c", 1),
    ]  # fmt: skip


def test_a_cell_whose_training_failed_is_not_evaluated() -> None:
    plan = counting_plan(study_configs(arms=1, seeds=1))
    schedule = Schedule(plan.cells, lambda task: False)
    schedule.set(Task(plan.cells[0], "train"), TaskState.FAILED)
    assert schedule.next_task() is None
    assert schedule.cell_state(plan.cells[0], stopping=False) == "failed"


def test_every_cell_is_trained_and_evaluated_once(tmp_path: Path) -> None:
    configs = study_configs(arms=2, seeds=2)
    outcome, printed = run_counting_study(tmp_path, configs)
    assert (outcome.exit_code, len(outcome.done)) == (0, 4)
    for config in configs:
        run = run_of(tmp_path, config)
        assert [record["step"] for record in run.steps()] == [1, 2, 3, 4, 5, 6]
        assert {entry.attempt for entry in run.status().values()} == {1}
        assert run.results("geometry") is not None
    assert "a seed 0: done at step 6, accuracy 1.000" in printed
    assert printed.count("seed") == 4


def test_a_finished_study_starts_no_process(tmp_path: Path) -> None:
    configs = study_configs(arms=1, seeds=2)
    run_counting_study(tmp_path, configs)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    outcome, printed = run_counting_study(tmp_path, configs)
    assert outcome.exit_code == 0
    assert printed == "2 of 2 cells are done.\n"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_failed_cell_does_not_stop_the_others_and_is_told_at_the_end(tmp_path: Path) -> None:
    configs = [*study_configs(arms=2, seeds=1), counting_config(0, "broken", fail_at=3)]
    outcome, printed = run_counting_study(tmp_path, configs)
    assert outcome.exit_code == 1
    assert [cell.label for cell in outcome.done] == ["a", "b"]
    assert "FAILED broken seed 0, train: ValueError: step 3 can't be counted" in printed
    assert "Traceback" in printed
    assert "2 of 3 cells are done." in printed


def test_a_worker_killed_from_outside_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    configs = [counting_config(0, "killed", kill_at=5), *study_configs(arms=2, seeds=1)]
    outcome, printed = run_counting_study(tmp_path, configs)
    assert outcome.exit_code == 0
    assert "killed seed 0, train: its process was ended from outside (SIGKILL); starting it again" in printed
    run = run_of(tmp_path, configs[0])
    assert [record["step"] for record in run.steps()] == [1, 2, 3, 4, 5, 6]
    assert run.status()["train"].attempt == 2


def test_interrupting_saves_and_the_same_command_goes_on(tmp_path: Path) -> None:
    study: dict[str, Any] = {"arms": 2, "seeds": 2, "steps": 60, "seconds": 0.05, "checkpoint_every": 100}
    driver = start_driver(tmp_path, **study)
    runs = [run_of(tmp_path, config) for config in study_configs(**study)]
    while not any(run.steps() for run in runs):
        assert driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    printed, _ = driver.communicate(timeout=30)
    assert driver.returncode == 130
    assert "Resume with the same command" in printed
    begun = {run: run.steps() for run in runs if run.steps()}
    assert begun
    for run in begun:
        assert run.status()["train"].state == "interrupted"
    driver = start_driver(tmp_path, **study)
    driver.communicate(timeout=60)
    assert driver.returncode == 0
    for run, records in begun.items():
        assert run.steps()[: len(records)] == records


def test_workers_of_a_killed_driver_save_and_end(tmp_path: Path) -> None:
    study: dict[str, Any] = {"arms": 1, "seeds": 1, "steps": 2000, "seconds": 0.05, "checkpoint_every": 5000}
    driver = start_driver(tmp_path, **study)
    run = run_of(tmp_path, study_configs(**study)[0])
    while not run.steps_path.exists():
        assert driver.poll() is None
        time.sleep(0.05)
    worker = run.status()["train"].pid
    assert process_start(worker) is not None
    driver.kill()
    driver.communicate()
    while process_start(worker) is not None:
        time.sleep(0.05)
    assert run.status()["train"].state == "preempted"
    assert json.loads((run.checkpoints / "state.json").read_text())["step"] == run.steps()[-1]["step"]


def test_a_second_driver_names_the_holder_and_works_on_the_rest(tmp_path: Path) -> None:
    study: dict[str, Any] = {"arms": 1, "seeds": 2, "steps": 2000, "seconds": 0.05}
    held, free = study_configs(**study)
    first = start_driver(tmp_path, arms=1, seeds=1, steps=2000, seconds=0.05)
    try:
        while not run_of(tmp_path, held).steps_path.exists():
            assert first.poll() is None
            time.sleep(0.05)
        quick = {**free, "training": {**free["training"], "steps": 3}}
        outcome, printed = run_counting_study(tmp_path, [held, quick])
        holder = run_of(tmp_path, held).status()["train"]
        assert outcome.exit_code == 1
        assert [cell.run_id for cell in outcome.done] == [run_id(quick)]
        assert f"process {holder.pid} on {holder.host} works on it" in printed
        assert "is left to process" in printed
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=30)


def test_two_drivers_share_a_study(tmp_path: Path) -> None:
    study: dict[str, Any] = {"arms": 2, "seeds": 3, "seconds": 0.05}
    drivers = [start_driver(tmp_path, **study) for _ in range(2)]
    for driver in drivers:
        driver.communicate(timeout=60)
    outcome, _ = run_counting_study(tmp_path, study_configs(**study))
    assert outcome.exit_code == 0
    for config in study_configs(**study):
        assert [record["step"] for record in run_of(tmp_path, config).steps()] == [1, 2, 3, 4, 5, 6]
        assert run_of(tmp_path, config).status()["train"].attempt == 1


def progress(state: str, number: int) -> CellProgress:
    return CellProgress(f"cell {number}", number, state, 3, 6, 0.5, 2.0, 0.1, 0.3)


def test_the_live_table_shows_the_whole_study() -> None:
    cells = [progress("done", number) for number in range(20)] + [progress("training", 20)]
    console = Console(force_terminal=True, width=100, height=60, file=io.StringIO())
    with console.capture() as captured, opened_view(console) as view:
        view.show(StudyProgress(cells, seconds=70.0, seconds_left=5.0), cells[:20])
    shown = Text.from_ansi(captured.get()).plain
    assert "20 of 21 cells done, 1:10, about 0:05 left" in shown
    assert all(f"cell {number} " in shown for number in range(21))


def test_a_table_without_room_for_all_cells_shows_the_busy_ones() -> None:
    cells = [progress("done", number) for number in range(20)] + [progress("training", 20)]
    console = Console(width=100, file=io.StringIO())
    with console.capture() as captured:
        console.print(cells_table(cells, rows=4))
    lines = captured.get().splitlines()
    assert len(lines) == 1 + 4 + 1
    assert lines[-2].split() == ["cell", "20", "20", "training", "3/6", "0.500", "2.0", "0.10", "0:00"]
    assert "and 17 more" in lines[-1]


def test_without_a_terminal_there_is_a_line_a_finished_cell(capsys: pytest.CaptureFixture[str]) -> None:
    cells = [progress("done", 0), progress("training", 1)]
    with opened_view(Console(force_terminal=False)) as view:
        view.show(StudyProgress(cells, 1.0, None), cells[:1])
        view.show(StudyProgress(cells, 2.0, None), [])
        view.show(StudyProgress(cells, 90.0, None), [])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0] == "[1 of 2 cells done, 0:01] cell 0 seed 0: done at step 3, accuracy 0.500"
    assert "cell 1 seed 1 training 3/6" in lines[1]


def test_progress_reads_the_latest_validation_and_survives_a_pause(tmp_path: Path) -> None:
    config = counting_config()
    run = RunDirectory.create(tmp_path, "run", config)
    cell = counting_plan([config]).cells[0]
    assert cell_progress(run, cell, "waiting").accuracy is None
    times = [0.0, 1.0, 2.0, 3602.0, 3603.0]
    records = [{"step": step, "time": time, "timing_s/step": 0.5} for step, time in enumerate(times)]
    records[2]["val/accuracy"] = 0.25
    run.steps_path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    run.provenance_path.write_text('{"steps": 14}')
    shown = cell_progress(run, cell, "training")
    assert (shown.step, shown.steps, shown.accuracy, shown.step_seconds) == (4, 14, 0.25, 0.5)
    assert shown.seconds_left == 10.0
