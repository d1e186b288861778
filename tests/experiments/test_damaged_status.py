"""A run whose status can't be read is told as such; the other cells of its study go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from counting_study import counting_plan, run_counting_study, study_configs

from experiments.commands.submit import _print_decision
from experiments.identity import run_id
from experiments.run_directory import RunDirectory
from slurm.cost import expected_gpu_hours
from slurm.decision import decide
from slurm.overview import study_overview
from slurm.submit import Outcome

DAMAGE = ['{"train": {"state": "do', "[]", '{"train": {"state": "finished"}}', "\udcff"]


def spoil(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("text", DAMAGE)
def test_a_study_runs_on_without_it_and_whole_once_the_file_is_gone(tmp_path: Path, text: str) -> None:
    configs = study_configs(arms=3, seeds=1)
    run_counting_study(tmp_path, configs[:1])
    damaged = RunDirectory(tmp_path / "runs" / run_id(configs[0]))
    spoil(damaged.status_path, text)
    outcome, printed = run_counting_study(tmp_path, configs)
    assert outcome.exit_code == 1
    assert [cell.label for cell in outcome.done] == ["b", "c"]
    assert "FAILED a seed 0, train: UserError: The status file can't be read" in printed
    damaged.status_path.unlink()
    steps = damaged.steps_path.read_bytes()
    outcome, _ = run_counting_study(tmp_path, configs)
    assert outcome.exit_code == 0
    assert damaged.steps_path.read_bytes() == steps


@pytest.mark.parametrize("text", DAMAGE)
def test_a_look_at_a_study_names_it_beside_the_others_and_sends_nothing_for_it(
    tmp_path: Path, text: str
) -> None:
    configs = study_configs(arms=3, seeds=1)
    run_counting_study(tmp_path, configs[:2])
    path = RunDirectory(tmp_path / "runs" / run_id(configs[1])).status_path
    spoil(path, text)
    overview = study_overview(counting_plan(configs), tmp_path)
    states = [[stage.verdict.state for stage in cell.stages.values()] for cell in overview.cells]
    assert states == [["done", "done"], ["damaged", "damaged"], ["pending", "pending"]]
    detail = overview.cells[1].stages["train"].verdict.detail
    assert str(path) in detail
    assert "delete it" in detail
    decision = decide(overview, lambda cell, stage: cell is overview.cells[0].cell, "all", (), None)
    assert {step.cell.label for step in decision.send} == {"c"}
    assert {cell.label for cell, _ in decision.left} == {"b"}


def test_a_submission_offers_no_retry_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = study_configs(arms=1, seeds=1)
    run_counting_study(tmp_path, configs)
    spoil(RunDirectory(tmp_path / "runs" / run_id(configs[0])).status_path, "[]")
    overview = study_overview(counting_plan(configs), tmp_path)
    capsys.readouterr()
    _print_decision(Outcome(decide(overview, lambda cell, stage: False, None, (), None), (), None, overview))
    printed = capsys.readouterr().out
    assert "train: damaged (" in printed and "()" not in printed
    assert "--retry" not in printed and "every stage is done" not in printed


def test_what_a_submission_costs_is_expected_from_the_other_runs(tmp_path: Path) -> None:
    configs = study_configs(arms=1, seeds=2)
    run_counting_study(tmp_path, configs)
    spoil(RunDirectory(tmp_path / "runs" / run_id(configs[0])).status_path, "[]")
    plan = counting_plan(configs)
    stages = [(cell, "train", 1) for cell in plan.cells]
    found = expected_gpu_hours(plan, tmp_path, stages, lambda cell, stage: None)
    assert len(found.measured) == 2 and found.measured[0] == found.measured[1]


@pytest.mark.parametrize("line", ["5", "null", '{"step": 3}', '{"step": "x", "time": 1}', "{"])
def test_a_look_does_not_end_on_a_damaged_step_log_or_provenance(tmp_path: Path, line: str) -> None:
    configs = study_configs(arms=1, seeds=1)
    run_counting_study(tmp_path, configs)
    run = RunDirectory(tmp_path / "runs" / run_id(configs[0]))
    run.steps_path.write_text(f"{line}\n")
    run.provenance_path.write_text(line)
    (cell,) = study_overview(counting_plan(configs), tmp_path).cells
    assert (cell.step, cell.total, cell.seconds_left) == (0, None, None)
    assert {stage.verdict.state for stage in cell.stages.values()} == {"done"}
