"""With images: a training that was stopped ends as one that was not, and two workers share the rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from image_witness import own_images
from tiny_assets import Assets
from tiny_cells import cell, ragged_cell
from tiny_vision_assets import SEEING
from training import Trained, train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

RAGGED = ragged_cell(**SEEING)
TWO: dict[str, Any] = {"gpus_per_node": 2}
VANILLA = {**TWO, "constant_groups": "easyr1", "sequence_mean": "easyr1"}


@pytest.fixture(scope="module")
def uninterrupted(vision_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cell(tmp_path_factory.mktemp("uninterrupted"), vision_assets, RAGGED)


@pytest.mark.parametrize("ends", [False, True], ids=["in an epoch", "at its end, where n changes"])
def test_resumed_equals_uninterrupted(
    uninterrupted: Trained, vision_assets: Assets, tmp_path: Path, ends: bool
) -> None:
    key = "rollout/n" if ends else "epoch"
    stop = next(
        before["step"]
        for before, after in pairwise(uninterrupted.steps)
        if (before[key] != after[key]) == ends
    )
    assert any(record["rollout/skipped"] for record in uninterrupted.steps)
    stopped = train_cell(tmp_path, vision_assets, RAGGED, stop_after=stop)
    assert f"stopped after step {stop}" in stopped.log
    resumed = train_cell(tmp_path, vision_assets, RAGGED)
    assert resumed.checksum == uninterrupted.checksum != ""
    assert [record["step"] for record in resumed.steps] == list(range(1, 10))
    for key in ("rollout/n", "rollout/tokens", "rollout/skipped", "select/kept", "actor/grad_norm", "epoch"):
        assert [record[key] for record in resumed.steps] == [record[key] for record in uninterrupted.steps]


def test_two_workers_switched_off_are_easyr1s(vision_assets: Assets, tmp_path: Path) -> None:
    config = cell(training=SEEING, engine=VANILLA)
    vanilla = train_cell(tmp_path / "vanilla", vision_assets, config, vanilla=True)
    trained = train_cell(tmp_path / "trained", vision_assets, config)
    assert trained.checksum == vanilla.checksum != ""


def test_fastrl_trains_and_resumes_on_two(vision_assets: Assets, tmp_path: Path) -> None:
    config = cell(
        rollouts="ars",
        selector="mdap",
        parts={"selector": {"tau": 0.9}},
        training={**SEEING, "checkpoint_every": 2},
        engine=TWO,
    )
    uninterrupted = train_cell(tmp_path / "uninterrupted", vision_assets, config, watch_images=True)
    assert [record["step"] for record in uninterrupted.steps] == [1, 2, 3, 4, 5, 6]
    # Two ranks, two updates, micro-batches of two.
    assert all(record["select/kept_aligned"] % 8 == 0 for record in uninterrupted.steps)
    own = own_images(vision_assets.policy, vision_assets.train)
    updated = [row for row in uninterrupted.seen if row["stage"] == "update"]
    assert len(updated) == sum(record["select/kept_aligned"] for record in uninterrupted.steps)
    assert all(row["images"] == own[row["prompt"]] for row in uninterrupted.seen)
    train_cell(tmp_path / "resumed", vision_assets, config, stop_after=4)
    assert train_cell(tmp_path / "resumed", vision_assets, config).checksum == uninterrupted.checksum
