"""Plain Hydra on a real Slurm: `--multirun hydra/launcher=fastrl_slurm`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rehearsal import until

from experiments.cli import main

PROJECT = Path(__file__).parents[2]
TINY = (
    *("model=laptop_llama", "dataset=laptop_geometry", "training=laptop", "engine=reference"),
    *("model.sft.steps=20", "model.sft.batch_size=64", "model.tokenizer.corpus_size=600"),
    *("training.epochs=1", "training.questions_per_step=8", "training.updates=2"),
    *("training.validate_every=0", "benchmark=[laptop_geometry]"),
    "dataset.splits.sizes={train: 16, selection: 8, validation: 8, out_of_domain: 8}",
    "benchmarks.laptop_geometry.dataset.splits.sizes="
    "{train: 16, selection: 8, validation: 8, out_of_domain: 8}",
    "benchmarks.laptop_geometry.decodings={t1: {temperature: 1.0, samples: 2}}",
    "benchmarks.laptop_geometry.pass_k=[1,2]",
)
FIRST_TRAINING_FAILS = "'case $SLURM_JOB_NAME$SLURM_ARRAY_TASK_ID in *train0) exit 9;; esac'"


def launch(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "experiments.train", "--multirun", "hydra/launcher=fastrl_slurm"]
    command += ["method=grpo,fastrl", *TINY, f"paths.root={root}", *words]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slurm
@pytest.mark.slow
def test_a_sweep_is_sent_and_not_waited_for_and_a_failed_job_hides_no_other(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def record() -> dict[str, Any]:
        assert main(["status", f"study={study}", f"paths.root={tmp_path}", "--json"]) == 0
        shown: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return shown[0]

    def states() -> list[list[str]]:
        return [[stage["state"] for stage in cell["stages"].values()] for cell in record()["cells"]]

    # Jobs that begin in an hour: to wait for them would take longer than `launch` allows.
    sent = launch(tmp_path, "cluster=minislurm", "+cluster.slurm.extra.begin=now+1hour")
    assert sent.returncode == 0, sent.stderr
    (study,) = (path.name for path in (tmp_path / "studies").iterdir())
    assert f"fastrl status study={study}" in sent.stdout
    assert states() == [["queued"] * 2] * 2
    assert main(["cancel", f"study={study}", f"paths.root={tmp_path}"]) == 0
    capsys.readouterr()
    sent = launch(tmp_path, "cluster=minislurm", f"cluster.slurm.setup=[{FIRST_TRAINING_FAILS}]")
    assert sent.returncode == 0, sent.stderr
    until(lambda: record()["report"]["state"] == "done", "the report", seconds=300.0)
    assert states() == [["died", "skipped"], ["done", "done"]]
    rows = (tmp_path / "studies" / study / "tables" / "table1.csv").read_text()
    assert record()["cells"][1]["run_id"] in rows


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "cluster=local has no Slurm"),
        (("cluster=minislurm", "hydra.launcher.retry=some"), 'no kind of retry called "some"'),
        (("cluster=minislurm", "training.epochz=1"), "epochz"),
    ],
)
def test_what_can_not_be_sent_is_said_in_one_line_and_sends_nothing(
    words: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    done = launch(tmp_path, *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
