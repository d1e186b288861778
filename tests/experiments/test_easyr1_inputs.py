"""What the train stage writes for EasyR1 to read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.datasets.records import DataError
from experiments.compose import compose_cell
from experiments.easyr1_training import run_files, write_inputs
from experiments.identity import run_id
from experiments.run_directory import RunDirectory

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


def test_images_need_a_chat_template(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"policy has no chat template.*laptop_figures"):
        inputs(tmp_path, None)
