"""A training that is stopped and started again ends with the weights of one that was not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_assets import Assets
from tiny_cells import ragged_cell
from training import Trained, train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

RAGGED = ragged_cell()


@pytest.fixture(scope="module")
def uninterrupted(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cell(tmp_path_factory.mktemp("uninterrupted"), assets, RAGGED)


@pytest.mark.parametrize("stops", [(2,), (3,), (4, 7)], ids=["in an epoch", "at its end", "twice"])
def test_resumed_equals_uninterrupted(
    uninterrupted: Trained, assets: Assets, tmp_path: Path, stops: tuple[int, ...]
) -> None:
    for stop in stops:
        stopped = train_cell(tmp_path, assets, RAGGED, stop_after=stop)
        assert f"stopped after step {stop}" in stopped.log
        assert [record["step"] for record in stopped.steps] == list(range(1, stop + 1))
    resumed = train_cell(tmp_path, assets, RAGGED)
    assert resumed.checksum == uninterrupted.checksum
    assert [record["step"] for record in resumed.steps] == list(range(1, 10))
    for key in ("rollout/n", "rollout/tokens", "rollout/skipped", "select/kept", "actor/grad_norm", "epoch"):
        assert [record[key] for record in resumed.steps] == [record[key] for record in uninterrupted.steps], (
            key
        )


def test_a_checkpoint_that_cannot_be_resumed_is_refused(assets: Assets, tmp_path: Path) -> None:
    train_cell(tmp_path, assets, RAGGED, stop_after=2)
    checkpoints = tmp_path / "checkpoints"
    wider = {**RAGGED, "engine": {**RAGGED["engine"], "gpus_per_node": 2}}
    assert "written by 1 ranks, and this run has 2" in train_cell(tmp_path, assets, wider, fails=True).log
    shutil.rmtree(checkpoints / "global_step_2" / "actor")
    assert "would train from the start" in train_cell(tmp_path, assets, RAGGED, fails=True).log
    (checkpoints / "checkpoint_tracker.json").write_text(json.dumps({"last_global_step": "?"}))
    assert "is damaged" in train_cell(tmp_path, assets, RAGGED, fails=True).log
