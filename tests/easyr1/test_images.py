"""Questions with images on a real EasyR1: its own training where nothing is pruned, and what a model sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_assets import Assets
from tiny_cells import cell
from tiny_vision_assets import SEEING, build_vision_assets
from training import Trained, train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

VANILLA = {"constant_groups": "easyr1", "sequence_mean": "easyr1"}
OFF = cell(training=SEEING, engine=VANILLA)


@pytest.fixture(scope="module")
def vanilla(vision_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cell(tmp_path_factory.mktemp("vanilla"), vision_assets, OFF, vanilla=True)


def test_switched_off_it_is_easyr1(vanilla: Trained, vision_assets: Assets, tmp_path: Path) -> None:
    trained = train_cell(tmp_path, vision_assets, OFF)
    assert trained.checksum == vanilla.checksum != ""
    assert [record["step"] for record in trained.steps] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("prune", ["before_logprob", "after_logprob"])
def test_mdap_with_tau_0_is_easyr1(
    vanilla: Trained, vision_assets: Assets, tmp_path: Path, prune: str
) -> None:
    config = cell(
        selector="mdap", parts={"selector": {"tau": 0.0}}, prune=prune, training=SEEING, engine=VANILLA
    )
    assert train_cell(tmp_path, vision_assets, config).checksum == vanilla.checksum


def test_with_other_images_it_is_another_training(vanilla: Trained, tmp_path: Path) -> None:
    """The same questions and image sizes: only the pixels differ."""
    swapped = build_vision_assets(tmp_path / "swapped", swapped=True)
    trained = train_cell(tmp_path / "trained", swapped, OFF)
    assert trained.checksum != vanilla.checksum


@pytest.mark.parametrize(
    ("limits", "sides"),
    [
        ({}, {"", "4x4", "4x6", "8x4", "8x4+8x4", "2x2"}),
        ({"min_pixels": 56 * 56, "max_pixels": 56 * 56}, {"", "4x4", "6x2", "6x2+6x2"}),
    ],
    ids=["as they are", "of one area"],
)
def test_images_of_several_sizes_are_read_within_the_limits_of_the_config(
    limits: dict[str, Any], sides: set[str], vision_assets: Assets, tmp_path: Path
) -> None:
    """Sides are in patches of 14 pixels, height first; "" is a question without images."""
    config = cell(selector="mdap", training={**SEEING, "epochs": 1}, engine=limits)
    seen = train_cell(tmp_path, vision_assets, config, watch_images=True).seen
    for stage in ("sample", "old", "ref", "update"):
        rows = [row["images"].partition(" ")[0] for row in seen if row["stage"] == stage]
        assert set(rows) == sides, stage


def test_a_frozen_tower_stays_as_it_is(vision_assets: Assets, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    config = cell(training={**SEEING, "epochs": 1}, engine={"freeze_vision_tower": True})
    train_cell(tmp_path, vision_assets, config)
    before, after = (
        load_file(folder / "model.safetensors") for folder in (vision_assets.policy, tmp_path / "final")
    )
    assert before.keys() == after.keys()
    for name, weights in before.items():
        assert weights.equal(after[name]) == ("visual" in name), name


def test_what_is_saved_names_transformers_own_processor(vision_assets: Assets) -> None:
    """EasyR1 on GPUs and lm-eval load it, where torchvision is installed."""
    for name in ("preprocessor_config.json", "tokenizer_config.json"):
        saved = json.loads((vision_assets.policy / name).read_text())
        assert saved["processor_class"] == "Qwen2_5_VLProcessor", name
