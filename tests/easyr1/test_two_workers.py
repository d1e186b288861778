"""Two Ray workers over gloo: what holds with one holds with two, and rows that don't divide are aligned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_assets import Assets
from tiny_cells import cell
from training import Trained, train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

TWO: dict[str, Any] = {"gpus_per_node": 2}
VANILLA = {**TWO, "constant_groups": "easyr1", "sequence_mean": "easyr1"}


@pytest.fixture(scope="module")
def vanilla(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cell(tmp_path_factory.mktemp("vanilla"), assets, cell(engine=VANILLA), vanilla=True)


def test_switched_off_it_is_easyr1(vanilla: Trained, assets: Assets, tmp_path: Path) -> None:
    trained = train_cell(tmp_path, assets, cell(engine=VANILLA))
    assert trained.checksum == vanilla.checksum != ""
    assert [record["step"] for record in trained.steps] == [1, 2, 3, 4, 5, 6]


def test_fastrl_trains_and_resumes_on_two(assets: Assets, tmp_path: Path) -> None:
    config = cell(
        rollouts="ars",
        selector="mdap",
        parts={"selector": {"tau": 0.9}},
        training={"epochs": 3, "checkpoint_every": 2},
        engine=TWO,
    )
    uninterrupted = train_cell(tmp_path / "uninterrupted", assets, config)
    assert [record["step"] for record in uninterrupted.steps] == list(range(1, 10))
    steps = uninterrupted.steps
    # Two ranks, two updates, micro-batches of two.
    assert all(record["select/kept_aligned"] % 8 == 0 for record in steps)
    assert any(record["select/kept"] != record["select/kept_aligned"] for record in steps)
    assert any(record["select/kept_aligned"] < record["rollout/trajectories"] for record in steps)
    train_cell(tmp_path / "resumed", assets, config, stop_after=4)
    assert train_cell(tmp_path / "resumed", assets, config).checksum == uninterrupted.checksum
