"""The commands of a cluster, from the command line, without a cluster where none is needed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rehearsal import (
    EVALUATE,
    TRAIN,
    cell_config,
    expected_of,
    look,
    outcome_of,
    run_of,
    send,
    states,
    study,
    until,
)

from experiments.cli import main
from experiments.plan import write_plan
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus, State, write_entry
from experiments.step_log import append_step
from slurm.cancel import cancel
from slurm.doctor.site import site_checks
from slurm.settings import slurm_settings


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A results folder with a study of two cells, of which the first is at step 2."""
    configs = [cell_config(seed) for seed in range(2)]
    plan, by_id = study(configs)
    write_plan(tmp_path, plan)
    for run_id, config in by_id.items():
        RunDirectory.create(tmp_path, run_id, config)
    run = RunDirectory(tmp_path / "runs" / plan.cells[0].run_id)
    for step in (1, 2):
        append_step(run.steps_path, {"step": step, "time": 100.0 + step})
    return tmp_path


def test_status_as_json_holds_every_stage_and_its_source(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "study=counting", f"paths.root={planned}", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    first, second = record["cells"]
    assert (first["step"], second["step"]) == (2, 0)
    assert {name: each["state"] for name, each in first["stages"].items()} == {
        TRAIN: "pending",
        EVALUATE: "pending",
    }
    assert first["stages"][TRAIN]["source"] == "no record"


def test_status_without_a_study_shows_a_line_each(planned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", f"paths.root={planned}"]) == 0
    output = capsys.readouterr().out
    assert "0/2" in output
    assert "\033" not in output


def test_logs_of_a_run_that_has_not_started(planned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = sorted(path.name for path in (planned / "runs").iterdir())[0]
    assert main(["logs", name, f"paths.root={planned}"]) == 0
    assert "not been started" in capsys.readouterr().out
    assert main(["logs", "grpo", f"paths.root={planned}"]) == 2
    assert "2 runs begin" in capsys.readouterr().err
    assert main(["logs", "nobody", f"paths.root={planned}"]) == 2


def test_logs_show_every_attempt_that_came_and_went_between_two_looks(
    planned: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(sorted((planned / "runs").iterdir())[0])

    def attempt(number: int, state: State) -> None:
        run.attempt_path(TRAIN, number).mkdir(parents=True)
        (run.attempt_path(TRAIN, number) / "stdout.log").write_text(f"attempt {number} speaks\n")
        entry = StageStatus(state, number, 0.0, 0.0, "node1", 7, None, None)
        write_entry(run.status_path, TRAIN, entry)

    def pause(seconds: float) -> None:
        attempt(2, "preempted")
        attempt(3, "done")

    attempt(1, "preempted")
    monkeypatch.setattr("experiments.commands.logs.time.sleep", pause)
    assert main(["logs", run.run_id, "-f", f"paths.root={planned}"]) == 0
    assert capsys.readouterr().out == "".join(f"attempt {number} speaks\n" for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("words", "complaint", "way_out"),
    [
        (["submit"], "No study is named", "study=NAME"),
        (["submit", "study=smoke"], "cluster=local has no Slurm", "fastrl cluster up"),
        (["submit", "study=smoke", "cluster=minislrm"], "minislrm", "minislurm"),
        (["cancel"], "Nothing, or more than one thing", "study=NAME"),
        (["cancel", "no-such-run"], 'No run is called "no-such-run"', "fastrl status"),
        (["logs", "no-such-run"], 'No run is called "no-such-run"', "fastrl status"),
        (["logs"], "No run is named", "fastrl logs RUN"),
    ],
)
def test_wrong_usage(
    words: list[str],
    complaint: str,
    way_out: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*words, f"paths.root={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert way_out in error


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("cluster.slurm.signal_seconds=4000", "leaves less than half"),
        ("+cluster.slurm.environment.HF_TOKEN=x", "looks like a secret"),
        ("cluster.slurm.shapes.train.memory=lots", "memory must be a number"),
        ("+cluster.slurm.extra.array=1-3", "extra must not hold array"),
        ("+cluster.slurm.extra.nodes='2'", "extra must not hold nodes"),
        ("cluster.slurm.max_array_size=0", "max_array_size must be at least 1"),
        ("cluster.slurm.ray_join_seconds=0", "ray_join_seconds must be above 0"),
        ("cluster.slurm.shapes.train.nodes=2", "engine=reference uses 1"),
        ("cluster.slurm.shapes.train.cpu=1", "no key"),
    ],
)
def test_settings_that_can_not_work_are_refused_before_anything_is_sent(
    override: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["submit", "study=smoke", "seed=0", "cluster=minislurm", override, f"paths.root={tmp_path}"]
    assert main(words) == 2
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_training_on_several_nodes_asks_for_them_by_its_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["submit", "study=smoke", "method=grpo", "seed=0", "cluster=minislurm", "engine=easyr1_cpu"]
    assert main([*words, "engine.nodes=2", f"paths.root={tmp_path}", "--dry-run"]) == 0
    train, _, rest = capsys.readouterr().out.partition("evaluate-laptop_geometry")
    assert "--nodes=2" in train and "--ntasks-per-node=1" in train
    assert "--nodes=1" in rest and "--nodes=2" not in rest


@pytest.mark.slurm
def test_logs_follow_a_job_and_cancel_ends_it(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = [cell_config(0, "wait"), cell_config(1)]
    plan, by_id = study(configs)
    write_plan(tmp_path, plan)
    send(tmp_path, configs)
    waiting, other = by_id
    until(lambda: states(look(tmp_path, configs))[1] == {TRAIN: "done", EVALUATE: "done"}, "one cell done")
    # A job that is cancelled before its stage has begun leaves the first attempt, and its wait, to the next.
    until(lambda: len(run_of(tmp_path, configs[0]).steps()) >= 3, "the other one at its wait")
    assert states(look(tmp_path, configs))[0][TRAIN] == "running"
    assert main(["logs", other, "--stage", TRAIN, "-f", f"paths.root={tmp_path}"]) == 0
    assert "counted step 6" in capsys.readouterr().out
    assert main(["cancel", waiting, f"paths.root={tmp_path}"]) == 0
    assert "2 jobs cancelled" in capsys.readouterr().out
    until(lambda: states(look(tmp_path, configs))[0][TRAIN] == "cancelled", "the training cancelled")
    send(tmp_path, configs)
    until(lambda: states(look(tmp_path, configs))[0][EVALUATE] == "done", "the study done")
    assert outcome_of(tmp_path, configs[0]) == expected_of(configs[0])


@pytest.mark.slurm
def test_without_accounting_the_queue_and_the_run_directories_are_believed(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [cell_config(0, changes={"extra": {"begin": "now+1hour"}})]
    send(tmp_path, configs)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("squeue", "scancel"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    assert states(look(tmp_path, configs)) == [{TRAIN: "queued", EVALUATE: "queued"}]
    cancel(tmp_path, lambda submission, run, stage: True)
    overview = look(tmp_path, configs)
    assert states(overview) == [{TRAIN: "cancelled", EVALUATE: "cancelled"}]
    (tools / "squeue").unlink()
    assert "no squeue" in look(tmp_path, configs).notes[0]


@pytest.mark.slurm
def test_doctor_finds_a_partition_and_a_size_that_the_site_does_not_have(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = slurm_settings(cell_config(0))
    assert {check.level for check in site_checks(settings)} == {"ok"}
    found = {check.name: check for check in site_checks(replace(settings, partition="gpuu"))}
    assert found["partition"].level == "fail"
    assert "gpu, preempt" in found["partition"].found
    train = replace(settings.shapes.train, gpus=9)
    found = {
        check.name: check
        for check in site_checks(replace(settings, shapes=replace(settings.shapes, train=train)))
    }
    assert found["gpu: train"].level == "fail"
    assert "no node has 9 GPUs" in found["gpu: train"].found
    train = replace(settings.shapes.train, nodes=4)
    found = {
        check.name: check
        for check in site_checks(replace(settings, shapes=replace(settings.shapes, train=train)))
    }
    assert found["gpu: train"].level == "fail"
    assert found["gpu: train"].found.startswith("4 nodes, each with 0 GPUs")
    assert found["gpu: train"].found.endswith("but 3 have that")
