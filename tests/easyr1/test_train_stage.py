"""The suite's train stage in EasyR1's own environment, from a run directory to a trained policy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny_assets import Assets
from tiny_cells import cell

from experiments.run_directory import RunDirectory

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "RAY_AUTH_MODE": "disabled"}


def test_the_stage_loads_neither_hydra_nor_evaluation_nor_tracking() -> None:
    code = (
        "import experiments.train_stage, experiments.easyr1_training, fastrl.engines.easyr1.launch, sys\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert not {"hydra", "lm_eval", "mlflow", "submitit"} & set(done.stdout.split())


def test_a_run_directory_is_trained_to_its_end(assets: Assets, tmp_path: Path) -> None:
    dataset = yaml.safe_load((ROOT / "experiments/conf/dataset/laptop_geometry.yaml").read_text())
    dataset["splits"]["sizes"] |= {"train": 24, "validation": 8}
    config = {
        **cell(
            rollouts="ars",
            selector="mdap",
            training={"max_prompt_tokens": 300, "validate_every": 2, "record_rollouts_every": 3},
            engine={"home": os.environ.get("EASYR1_HOME")},
        ),
        "schema_version": 1,
        "dataset": dataset,
        "model": {"name": "tiny", "label": "Tiny", "kind": "hub", "path": str(assets.policy)},
        "benchmarks": {},
        "cluster": {"name": "local", "workers": None, "slurm": None},
        "tracking": {"name": "none", "uri": ""},
        "paths": {"root": str(tmp_path)},
    }
    run = RunDirectory.create(tmp_path, "tiny-run", config)
    result = subprocess.run(
        [sys.executable, "-m", "experiments.stage", str(run.path), "train"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert run.status()["train"].state == "done"
    steps = run.steps()
    assert [record["step"] for record in steps] == [0, 1, 2, 3, 4, 5, 6]
    assert [record["step"] for record in steps if "val/accuracy" in record] == [0, 2, 4, 6]
    assert json.loads(run.provenance_path.read_text())["steps"] == 6
    assert (run.final_checkpoint / "model.safetensors").is_file()
    assert sorted(path.name for path in run.rollouts.iterdir()) == ["step_3.parquet", "step_6.parquet"]
