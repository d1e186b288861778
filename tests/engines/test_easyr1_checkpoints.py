"""Checkpoint folders of EasyR1: what is resumed from, what is refused, and whose a folder is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastrl.engines.easyr1.checkpoint_checks import (
    OWNER,
    TRACKER,
    CheckpointProblem,
    claim,
    export_policy,
    keep_own_logs,
    resumable_step,
)


def checkpoint(folder: Path, step: int, ranks: int) -> Path:
    """A checkpoint as EasyR1's FSDP workers leave it, with a tracker that names it."""
    actor = folder / f"global_step_{step}" / "actor"
    actor.mkdir(parents=True)
    for rank in range(ranks):
        (actor / f"model_world_size_{ranks}_rank_{rank}.pt").touch()
    (actor.parent / "dataloader.pt").touch()
    (folder / TRACKER).write_text(json.dumps({"last_global_step": step}))
    return actor


def test_an_empty_folder_starts_afresh(tmp_path: Path) -> None:
    assert resumable_step(tmp_path, ranks=4) == 0
    assert resumable_step(tmp_path / "none", ranks=4) == 0


def test_the_tracker_names_the_step_to_go_on_after(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5, ranks=4)
    checkpoint(tmp_path, 10, ranks=4)
    assert resumable_step(tmp_path, ranks=4) == 10


def test_a_first_checkpoint_that_was_cut_short_is_dropped(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5, ranks=4)
    (tmp_path / TRACKER).unlink()
    assert resumable_step(tmp_path, ranks=4) == 0
    assert not (tmp_path / "global_step_5").exists()


def test_several_checkpoints_without_a_tracker_are_not_thrown_away(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5, ranks=4)
    checkpoint(tmp_path, 10, ranks=4)
    (tmp_path / TRACKER).unlink()
    with pytest.raises(CheckpointProblem, match=f"2 checkpoints, but no {TRACKER}"):
        resumable_step(tmp_path, ranks=4)
    assert (tmp_path / "global_step_10" / "dataloader.pt").exists()


@pytest.mark.parametrize("lost", ["actor", "dataloader.pt"])
def test_a_checkpoint_that_is_gone_is_no_silent_new_start(tmp_path: Path, lost: str) -> None:
    actor = checkpoint(tmp_path, 5, ranks=4)
    (actor.parent / lost).rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointProblem, match="EasyR1 would train from the start"):
        resumable_step(tmp_path, ranks=4)


def test_another_number_of_gpus_is_refused_with_the_one_that_is_right(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5, ranks=4)
    with pytest.raises(CheckpointProblem, match=r"by 4 ranks, and this run has 8.*gpus_per_node to 4"):
        resumable_step(tmp_path, ranks=8)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"last_global_step": "?"}', '{"step": 5}'])
def test_a_damaged_tracker_is_named(tmp_path: Path, text: str) -> None:
    checkpoint(tmp_path, 5, ranks=4)
    (tmp_path / TRACKER).write_text(text)
    with pytest.raises(CheckpointProblem, match=f"{TRACKER} is damaged"):
        resumable_step(tmp_path, ranks=4)


def test_a_folder_is_one_runs_for_good(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    claim(folder, "grpo-s0")
    claim(folder, "grpo-s0")
    with pytest.raises(CheckpointProblem, match="checkpoints of the run grpo-s0, and this is grpo-s1"):
        claim(folder, "grpo-s1")
    assert [path.name for path in folder.iterdir()] == [OWNER]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_mark_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / OWNER).write_text(text)
    with pytest.raises(CheckpointProblem, match=f"{OWNER} is damaged"):
        claim(tmp_path, "grpo-s0")


def test_own_logs_are_numbered_after_the_last_one_and_never_written_over(tmp_path: Path) -> None:
    names = ["experiment_log_2.jsonl", "experiment_log.jsonl", "experiment_log_old.jsonl", "generations.log"]
    for name in names:
        (tmp_path / name).write_text(f"what {name} holds")
    keep_own_logs(tmp_path)
    (tmp_path / "experiment_log.jsonl").touch()  # a start that logged nothing
    keep_own_logs(tmp_path)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir() if path.stat().st_size}
    assert kept == {
        "experiment_log_2.jsonl": "what experiment_log_2.jsonl holds",
        "experiment_log_3.jsonl": "what experiment_log.jsonl holds",
        "experiment_log_old.jsonl": "what experiment_log_old.jsonl holds",
        "generations_1.log": "what generations.log holds",
    }


def test_sharded_weights_need_easyr1s_merger(tmp_path: Path) -> None:
    actor = checkpoint(tmp_path, 5, ranks=2)
    with pytest.raises(CheckpointProblem, match=r"set engine\.home to a checkout of EasyR1"):
        export_policy(actor, tmp_path / "final", easyr1_home=None)
    assert not (tmp_path / "final").exists()


def test_a_merger_that_fails_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    actor = checkpoint(tmp_path, 5, ranks=2)
    home = tmp_path / "easyr1"
    (home / "scripts").mkdir(parents=True)
    (home / "scripts" / "model_merger.py").write_text("raise SystemExit('the shards do not fit')")
    with pytest.raises(CheckpointProblem, match="the shards do not fit"):
        export_policy(actor, tmp_path / "final", home)
    assert not (tmp_path / "final").exists()
