"""Each method trains on a real EasyR1 for six steps, and does there what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_assets import Assets
from tiny_cells import cell
from training import train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor")
HALF = {"selector": {"pruning_rate": 0.5}}
CELLS: dict[str, dict[str, Any]] = {
    "fastrl": {"rollouts": "ars", "selector": "mdap"},
    "fastrl after log-probs": {"rollouts": "ars", "selector": "mdap", "prune": "after_logprob"},
    "fastrl, clusters weighed": {"selector": "mdap", "parts": {"selector": {"weight": "cluster_size"}}},
    "cppo": {"selector": "cppo", "parts": HALF},
    "random": {"selector": "random", "parts": HALF},
    "advantage only": {"selector": "advantage_only"},
    "gspo": {"objective": "gspo", "selector": "mdap"},
    "dapo": {"objective": "dapo", "prompts": "dynamic_sampling"},
    "greso": {"prompts": "greso"},
    "replay": {"rollouts": "replay", "parts": {"rollouts": {"values": [4, 2]}}},
}


@pytest.mark.parametrize("name", CELLS)
def test_a_method_trains_and_its_record_adds_up(name: str, assets: Assets, tmp_path: Path) -> None:
    made = dict(CELLS[name])
    made["parts"] = {"rollouts": {"n": 4}, **made.get("parts", {})}
    if made.get("rollouts") == "replay":
        made["parts"]["rollouts"] = {"values": [4, 2]}
    trained = train_cell(tmp_path, assets, cell(**made, training={"record_rollouts_every": 2}))
    assert [record["step"] for record in trained.steps] == [1, 2, 3, 4, 5, 6]
    for record in trained.steps:
        stages = sum(record[f"timing_s/{stage}"] for stage in STAGES)
        assert record["timing_s/step"] == pytest.approx(stages)
        assert all(record[f"timing_s/{stage}"] >= 0 for stage in STAGES)
        assert record["select/kept_aligned"] % 4 == 0  # two updates of micro-batches of two
        assert record["actor/updates"] == 2
        assert record["rollout/accepted"] == 8
    assert [each["step"] for each in trained.rollouts] == [2, 4, 6]
    for each, record in zip(trained.rollouts, trained.steps[1::2], strict=True):
        assert sum(each["kept"]) == record["select/kept_aligned"]
        assert all(bool(why) != kept for kept, why in zip(each["kept"], each["reason"], strict=True))


def test_ars_changes_the_number_of_rollouts_at_the_boundary(assets: Assets, tmp_path: Path) -> None:
    config = cell(rollouts="ars", selector="mdap", parts={"selector": {"tau": 1.0}}, training={"epochs": 3})
    steps = train_cell(tmp_path, assets, config).steps
    assert [record["epoch"] for record in steps] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    n = [record["rollout/n"] for record in steps]
    assert n[:3] == [4, 4, 4] and len(set(n[3:6])) == 1 and len(set(n[6:])) == 1
    assert [record["rollout/trajectories"] for record in steps] == [8 * each for each in n]


def test_replayed_rollouts_follow_the_schedule(assets: Assets, tmp_path: Path) -> None:
    config = cell(rollouts="replay", parts={"rollouts": {"values": [4, 2]}})
    steps = train_cell(tmp_path, assets, config).steps
    assert [record["rollout/n"] for record in steps] == [4, 4, 4, 2, 2, 2]


def test_mini_batches_make_fewer_updates_of_what_is_kept(assets: Assets, tmp_path: Path) -> None:
    config = cell(selector="advantage_only", training={"update_mode": "mini_batch", "updates": 4}, parts={})
    steps = train_cell(tmp_path, assets, config).steps
    assert all(record["actor/updates"] == record["select/kept_aligned"] // 8 for record in steps)
    assert any(record["actor/updates"] < 4 for record in steps)
