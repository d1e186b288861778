"""The whole of it with real trainings: one command, and some time later there is a report."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from rehearsal import until

from experiments.cli import main
from experiments.run_directory import RunDirectory
from slurm.client import call

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

Shown = pytest.CaptureFixture[str]
TIMED = ("training_time_", "speed_of_")
"""How the columns begin that no two runs share."""


def words(root: Path) -> list[str]:
    return [
        *("study=smoke", "method=grpo", "seed=0", "model.sft.steps=20", "training.epochs=6"),
        *("cluster=minislurm", f"cluster.slurm.python.train='{sys.executable}'", f"paths.root={root}"),
    ]


def record(root: Path, capsys: Shown) -> dict[str, Any]:
    """`fastrl status --json` of the study."""
    capsys.readouterr()
    assert main(["status", "study=smoke", f"paths.root={root}", "--json"]) == 0
    shown: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return shown[0]


def states(root: Path, capsys: Shown) -> list[str]:
    (cell,) = record(root, capsys)["cells"]
    return [stage["state"] for stage in cell["stages"].values()]


def is_finished(root: Path, capsys: Shown) -> bool:
    return record(root, capsys)["report"]["state"] == "done"


def table(root: Path) -> list[dict[str, str]]:
    with (root / "studies" / "smoke" / "tables" / "table1.csv").open() as stream:
        return list(csv.DictReader(stream))


def timeless(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if not row["column"].startswith(TIMED)]


def checkpoint(root: Path) -> str:
    """The digest of the policy that was evaluated."""
    (path,) = (root / "runs").iterdir()
    results = RunDirectory(path).results("laptop_geometry")
    assert results is not None
    return str(results["digests"]["checkpoint"])


@pytest.fixture(scope="module")
def undisturbed(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder to which a study has been sent, and nothing happens."""
    root = tmp_path_factory.mktemp("undisturbed")
    assert main(["submit", *words(root)]) == 0
    return root


def test_a_dry_run_sends_nothing(cluster: None, tmp_path: Path, capsys: Shown) -> None:
    assert main(["submit", *words(tmp_path), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "#SBATCH --array=0" in shown
    assert "expected GPU-hours: unknown" in shown
    assert not list(tmp_path.iterdir())


def test_a_study_with_accidents_comes_to_the_tables_of_an_undisturbed_one(
    undisturbed: Path, tmp_path: Path, capsys: Shown
) -> None:
    root = tmp_path
    assert main(["submit", *words(root)]) == 0
    (path,) = (root / "runs").iterdir()
    run = RunDirectory(path)

    def steps_of(attempt: int, least: int) -> bool:
        entry = run.status().get("train")
        running = entry is not None and (entry.attempt, entry.state) == (attempt, "running")
        return running and len(run.steps()) > least

    until(lambda: steps_of(1, 1), "the training at step 2", seconds=300.0)
    os.kill(run.status()["train"].pid, signal.SIGKILL)
    until(lambda: states(root, capsys) == ["killed", "skipped"], "the training killed")
    until(lambda: is_finished(root, capsys), "the report of what there was")
    # Without being asked to retry, what ended badly is left and said.
    assert main(["submit", *words(root)]) == 0
    assert "1 ended badly" in capsys.readouterr().out
    before = len(run.steps())
    assert main(["submit", *words(root), "--retry", "lost"]) == 0
    # Asked before the training starts, which does not wait for the answer.
    (cell,) = record(root, capsys)["cells"]
    until(lambda: steps_of(2, before), "a step of the second attempt", seconds=300.0)
    call(["scancel", cell["stages"]["train"]["job_id"]])
    until(lambda: states(root, capsys) == ["cancelled", "skipped"], "the training cancelled")
    assert main(["submit", *words(root)]) == 0
    for folder in (root, undisturbed):
        until(lambda: is_finished(folder, capsys), "the report", seconds=300.0)  # noqa: B023
        assert states(folder, capsys) == ["done", "done"]
    assert run.status()["train"].attempt == 3
    rows, expected = table(root), table(undisturbed)
    assert [row["column"] for row in rows] == [row["column"] for row in expected]
    assert timeless(rows) == timeless(expected)
    assert "laptop_geometry_t1_percent" in {row["column"] for row in timeless(rows)}
    assert checkpoint(root) == checkpoint(undisturbed)


def test_a_finished_study_is_left_as_it_is(undisturbed: Path, capsys: Shown) -> None:
    until(lambda: is_finished(undisturbed, capsys), "the report", seconds=300.0)
    (cell,) = record(undisturbed, capsys)["cells"]
    assert cell["run_id"] in {row["run_ids"] for row in table(undisturbed)}
    assert main(["submit", *words(undisturbed)]) == 0
    assert "every stage is done" in capsys.readouterr().out
    assert main(["submit", *words(undisturbed), "--dry-run"]) == 0
    assert "array" not in capsys.readouterr().out


def test_a_report_is_known_as_written_where_the_file_system_s_clock_is_behind(
    undisturbed: Path, capsys: Shown
) -> None:
    until(lambda: is_finished(undisturbed, capsys), "the report", seconds=300.0)
    os.utime(undisturbed / "studies" / "smoke" / "report.html", (1, 1))
    assert is_finished(undisturbed, capsys)
