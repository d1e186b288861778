"""status.json: several processes write their stages' entries and none is lost."""

from __future__ import annotations

import dataclasses
import multiprocessing
from pathlib import Path

import pytest

from experiments.errors import UserError
from experiments.status import StageError, StageStatus, changed, read_status, write_entry

RUNNING = StageStatus(
    state="running", attempt=1, updated=1.0, heartbeat=1.0, host="a", pid=7, slurm_job_id=None, error=None
)


def test_an_entry_is_read_back_exactly(tmp_path: Path) -> None:
    entry = dataclasses.replace(
        RUNNING, state="failed", slurm_job_id="12_4", error=StageError("ValueError", "reward is NaN", "a\nb")
    )
    write_entry(tmp_path / "status.json", "train", entry)
    assert read_status(tmp_path / "status.json") == {"train": entry}


def test_a_change_of_state_keeps_who_and_which_attempt() -> None:
    error = StageError("ValueError", "no", "")
    failed = changed(RUNNING, "failed", error)
    assert (failed.state, failed.error, failed.attempt, failed.pid) == ("failed", error, 1, 7)
    assert failed.updated == failed.heartbeat > RUNNING.updated


def _write_often(path: Path, stage: str) -> None:
    for attempt in range(1, 21):
        write_entry(path, stage, dataclasses.replace(RUNNING, attempt=attempt))


def test_stages_of_several_processes_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    context = multiprocessing.get_context("fork")
    stages = [f"evaluate-{name}" for name in "abcd"]
    writers = [context.Process(target=_write_often, args=(path, stage)) for stage in stages]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {stage: entry.attempt for stage, entry in read_status(path).items()} == dict.fromkeys(stages, 20)


def test_a_damaged_file_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    path.write_text("{broken")
    with pytest.raises(UserError, match="status file can't be read"):
        write_entry(path, "train", RUNNING)
    assert path.read_text() == "{broken"
