"""With nothing pruned a cell on the plug-in is EasyR1's own training, weight by weight."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_assets import Assets
from tiny_cells import cell
from training import Trained, train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

VANILLA = {"constant_groups": "easyr1", "sequence_mean": "easyr1"}


@pytest.fixture(scope="module")
def vanilla(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cell(tmp_path_factory.mktemp("vanilla"), assets, cell(engine=VANILLA), vanilla=True)


def test_switched_off_it_is_easyr1(vanilla: Trained, assets: Assets, tmp_path: Path) -> None:
    trained = train_cell(tmp_path, assets, cell(engine=VANILLA))
    assert trained.checksum == vanilla.checksum
    assert [record["step"] for record in trained.steps] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("prune", ["before_logprob", "after_logprob"])
def test_mdap_with_tau_0_is_easyr1(vanilla: Trained, assets: Assets, tmp_path: Path, prune: str) -> None:
    config = cell(selector="mdap", parts={"selector": {"tau": 0.0}}, prune=prune, engine=VANILLA)
    assert train_cell(tmp_path, assets, config).checksum == vanilla.checksum


def test_mdap_with_tau_1_is_not(vanilla: Trained, assets: Assets, tmp_path: Path) -> None:
    config = cell(selector="mdap", parts={"selector": {"tau": 1.0}}, engine=VANILLA)
    trained = train_cell(tmp_path, assets, config)
    assert trained.checksum != vanilla.checksum
    assert all(record["select/kept"] < record["rollout/trajectories"] for record in trained.steps)
