"""The job between a canary and the rest ends when the canary has made a step, or when Slurm says it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.run_directory import RunDirectory
from experiments.step_log import append_step
from slurm import gate
from slurm.client import SlurmError, call
from slurm.ledger import JobArray, StageTask, Submission, new_folder, write_submission

AWAY = "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
FORGOTTEN = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run whose training has been sent; looks at it follow each other at once."""
    array = JobArray(1, "study-train", "85", "", 30.0, 3, 60.0, {0: StageTask("run", "train", ("true",))})
    submission = Submission(new_folder(tmp_path), "study", 0.0, "site", "/code", (array,))
    submission.folder.mkdir(parents=True)
    write_submission(submission)
    monkeypatch.setattr("slurm.gate.time.sleep", lambda seconds: None)
    return RunDirectory(tmp_path / "runs" / "run")


def answers(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A `squeue` that gives one answer after the other, the last one again and again."""
    folder.mkdir()
    cases = [f"{number}) {line};;" for number, line in enumerate(lines[:-1], start=1)]
    squeue = folder / "squeue"
    squeue.write_text(
        f"#!/bin/sh\necho >>{folder}/asked\ncase $(grep -c '' {folder}/asked) in\n"
        + "\n".join([*cases, f"*) {lines[-1]};;", "esac", ""])
    )
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.parametrize("end", ["echo FAILED", FORGOTTEN, "true"])
def test_a_canary_that_ended_before_its_first_step_ends_it(
    tmp_path: Path, canary: RunDirectory, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    answers(tmp_path / "bin", monkeypatch, "echo PENDING", "echo RUNNING", end)
    assert gate.main([str(tmp_path), "run"]) == 1


def test_a_controller_that_does_not_answer_is_not_taken_for_an_end(
    tmp_path: Path, canary: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary.steps_path.parent.mkdir(parents=True)
    step = {"step": 1, "time": 1.0}
    looks: list[float] = []

    def first_step_at_the_third_look(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            append_step(canary.steps_path, step)

    monkeypatch.setattr("slurm.gate.time.sleep", first_step_at_the_third_look)
    answers(tmp_path / "bin", monkeypatch, AWAY)
    assert gate.main([str(tmp_path), "run"]) == 0
    assert len(looks) == 2


@pytest.mark.slurm
def test_slurm_says_so_of_a_job_that_it_has_forgotten(cluster: None) -> None:
    with pytest.raises(SlurmError, match=gate._FORGOTTEN):
        call(["squeue", "-h", "-r", "-j", "61234567_0", "-o", "%T"])
