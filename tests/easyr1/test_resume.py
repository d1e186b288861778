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


def test_an_end_while_a_checkpoint_is_written_leaves_the_one_before(
    uninterrupted: Trained, assets: Assets, tmp_path: Path
) -> None:
    """One is kept beside the best: for EasyR1 the first, until it validates after the last step."""
    config = ragged_cell(keep_checkpoints=1)
    train_cell(tmp_path, assets, config, stop_after=2)
    blocked = tmp_path / "checkpoints" / "global_step_6"
    blocked.touch()  # no folder can be made there
    train_cell(tmp_path, assets, config, fails=True)
    blocked.unlink()
    resumed = train_cell(tmp_path, assets, config)
    assert "EasyR1 goes on after step 4" in resumed.log
    assert resumed.checksum == uninterrupted.checksum
    assert [path.name for path in blocked.parent.glob("global_step_*")] == ["global_step_9"]


def test_a_stop_before_the_first_step_after_a_resume_leaves_its_checkpoint_as_it_is(
    assets: Assets, tmp_path: Path
) -> None:
    """Writing the only good one again would put it at risk, in the little time that a job has left."""
    train_cell(tmp_path, assets, RAGGED, stop_after=2)
    checkpoints = tmp_path / "checkpoints"
    files = [checkpoints / "checkpoint_tracker.json", *(checkpoints / "global_step_2").rglob("*")]
    written = {path: path.stat().st_mtime_ns for path in files}
    assert len(written) > 5
    assert "stopped after step 2" in train_cell(tmp_path, assets, RAGGED, stop_after=2).log
    assert {path: path.stat().st_mtime_ns for path in files} == written


def test_easyr1s_own_logs_of_an_earlier_start_are_kept(assets: Assets, tmp_path: Path) -> None:
    train_cell(tmp_path, assets, RAGGED, stop_after=2)
    train_cell(tmp_path, assets, RAGGED, stop_after=3)
    logs = [tmp_path / "checkpoints" / f"experiment_log{number}.jsonl" for number in ("_1", "")]
    steps = [[json.loads(line)["step"] for line in log.read_text().splitlines()] for log in logs]
    assert steps == [[1, 2], [3]]


def test_a_checkpoint_that_cannot_be_resumed_is_refused(assets: Assets, tmp_path: Path) -> None:
    train_cell(tmp_path, assets, RAGGED, stop_after=2)
    checkpoints = tmp_path / "checkpoints"
    wider = {**RAGGED, "engine": {**RAGGED["engine"], "gpus_per_node": 2}}
    assert "written by 1 ranks, and this run has 2" in train_cell(tmp_path, assets, wider, fails=True).log
    shutil.rmtree(checkpoints / "global_step_2" / "actor")
    assert "would train from the start" in train_cell(tmp_path, assets, RAGGED, fails=True).log
    (checkpoints / "checkpoint_tracker.json").write_text(json.dumps({"last_global_step": "?"}))
    assert "is damaged" in train_cell(tmp_path, assets, RAGGED, fails=True).log
