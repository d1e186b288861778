"""What the train stage writes for EasyR1 to read."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from eval.datasets.records import DataError
from experiments.compose import compose_cell
from experiments.easyr1_training import run_files, write_inputs
from experiments.identity import run_id
from experiments.run_directory import RunDirectory
from experiments.stage import run_stage

SIZES = "dataset.splits.sizes={train: 32, selection: 8, validation: 8, out_of_domain: 8}"


def inputs(root: Path, template: str | None) -> dict[str, int]:
    """Questions by split, of a policy whose tokenizer has this chat template."""
    policy = root / "policy"
    policy.mkdir(parents=True)
    (policy / "tokenizer_config.json").write_text(json.dumps({"chat_template": template} if template else {}))
    config = compose_cell(["engine=easyr1_cpu", f"paths.root={root}", SIZES])
    run = RunDirectory.create(root, run_id(config), config)
    splits = write_inputs(run_files(run, config, policy), config["dataset"])
    return {name: facts["questions"] for name, facts in splits.items()}


def test_figures_are_drawn_for_easyr1(tmp_path: Path) -> None:
    assert inputs(tmp_path, "{{ messages }}") == {"train": 32, "validation": 8}


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="may be EasyR1's environment")
def test_another_environment_than_easyr1s_is_named_before_anything_is_written(
    tmp_path: Path,
) -> None:
    config = compose_cell(["engine=easyr1_cpu", f"paths.root={tmp_path}", SIZES])
    run = RunDirectory.create(tmp_path, run_id(config), config)
    outcome = run_stage(run, "train")
    assert outcome.error is not None and outcome.error.kind == "UserError"
    assert f"{sys.executable} is not of EasyR1's environment: it has no ray" in outcome.error.message
    assert "cluster.slurm.python.train" in outcome.error.message
    assert not (tmp_path / "models").exists()


def test_images_need_a_chat_template(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"policy has no chat template.*laptop_figures"):
        inputs(tmp_path, None)
