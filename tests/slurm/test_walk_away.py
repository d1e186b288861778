"""The whole of it with a real training: one command, and some time later there is a report."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rehearsal import until

from experiments.cli import main

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_submit_and_come_back_to_a_table(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study=smoke", "method=grpo", "seed=0", "model.sft.steps=20", "cluster=minislurm"]
    words += [f"cluster.slurm.python.train='{sys.executable}'", f"paths.root={tmp_path}"]
    assert main(["submit", *words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "#SBATCH --array=0" in shown
    assert "expected GPU-hours: unknown" in shown
    assert not (tmp_path / "runs").exists()
    assert main(["submit", *words]) == 0
    capsys.readouterr()

    def record() -> dict[str, Any]:
        assert main(["status", "study=smoke", f"paths.root={tmp_path}", "--json"]) == 0
        shown: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return shown[0]

    until(lambda: record()["report"]["state"] == "done", "the report", seconds=500.0)
    (cell,) = record()["cells"]
    assert {stage["state"] for stage in cell["stages"].values()} == {"done"}
    with (tmp_path / "studies" / "smoke" / "tables" / "table1.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert cell["run_id"] in {row["run_ids"] for row in rows}
    assert main(["submit", *words]) == 0
    assert "every stage is done" in capsys.readouterr().out
    assert main(["submit", *words, "--dry-run"]) == 0
    assert "array" not in capsys.readouterr().out
