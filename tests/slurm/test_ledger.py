"""The ledger's order: which of two submissions is the newer one, whatever the clocks say."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.atomic_files import write_json
from experiments.errors import UserError
from experiments.locks import acquire
from slurm.ledger import (
    JobArray,
    StageTask,
    Submission,
    mark_cancelled,
    new_folder,
    newest,
    submissions,
    write_submission,
)
from slurm.queue import TaskId


def sent(root: Path, job: str, folder: Path | None = None) -> Submission:
    """A record of one stage, sent as a job."""
    array = JobArray(1, "study-train", job, "", 30.0, 3, 60.0, {0: StageTask("run", "train", ("true",))})
    submission = Submission(folder or new_folder(root), "study", 0.0, "site", "/code", (array,))
    submission.folder.mkdir(parents=True)
    write_submission(submission)
    return submission


def test_submissions_of_one_second_stay_in_the_order_in_which_they_were_sent(tmp_path: Path) -> None:
    jobs = [str(number) for number in range(40)]
    for job in jobs:
        sent(tmp_path, job)
    assert [each.arrays[0].job_id for each in submissions(tmp_path)] == jobs
    assert newest(submissions(tmp_path), {})["run", "train"].task == TaskId("39", 0)


def test_a_login_node_whose_clock_is_behind_sends_the_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = ["20261025-025959", "20261025-020001", "20241231-235959"]
    monkeypatch.setattr("slurm.ledger.time.strftime", lambda _: times.pop(0))
    for job in ("1", "2", "3"):
        sent(tmp_path, job)
    assert newest(submissions(tmp_path), {})["run", "train"].task == TaskId("3", 0)


def test_more_than_a_hundred_thousand_submissions_are_in_order_too(tmp_path: Path) -> None:
    sent(tmp_path, "1", tmp_path / "slurm" / "99999-20261130-120000-abcdabcd")
    sent(tmp_path, "2")
    assert [each.arrays[0].job_id for each in submissions(tmp_path)] == ["1", "2"]


def test_folders_from_before_they_were_numbered_come_first(tmp_path: Path) -> None:
    names = [f"2026112{day}-120000-{random.Random(day).randbytes(2).hex()}" for day in range(3)]
    for job, name in enumerate(names):
        sent(tmp_path, str(job), tmp_path / "slurm" / name)
    (tmp_path / "slurm" / "code" / "20261120-120000-abcdabcd").mkdir(parents=True)
    assert sent(tmp_path, "3").folder.name.startswith("00001-")
    assert [each.arrays[0].job_id for each in submissions(tmp_path)] == ["0", "1", "2", "3"]


def test_a_name_does_not_come_back_when_the_newest_folder_was_moved_away(tmp_path: Path) -> None:
    sent(tmp_path, "1")
    names = set()
    for _ in range(20):
        moved = sent(tmp_path, "2")
        names.add(moved.folder.name)
        moved.folder.rename(tmp_path / moved.folder.name)
    assert len(names) == 20


def test_of_many_who_cancel_at_once_none_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_slowly(path: Path, record: Mapping[str, Any]) -> None:
        """Widen the gap between reading and writing."""
        time.sleep(0.02)
        write_json(path, record)

    monkeypatch.setattr("slurm.ledger.write_json", write_slowly)
    submission = sent(tmp_path, "7")
    context = multiprocessing.get_context("fork")
    tasks = [TaskId("7", index) for index in range(12)]
    users = [context.Process(target=mark_cancelled, args=(submission, [task])) for task in tasks]
    for user in users:
        user.start()
    for user in users:
        user.join()
    record = json.loads((submission.folder / "cancelled.json").read_text())
    assert record == {"tasks": sorted(map(str, tasks))}
    assert not (submission.folder / "cancelled.lock").exists()


def test_a_process_that_goes_on_cancelling_is_told_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm.ledger._LOCK_SECONDS", 0.0)
    submission = sent(tmp_path, "7")
    path = submission.folder / "cancelled.lock"
    with acquire(path) as lock, pytest.raises(UserError, match=f"cancelling .*{lock.holder}") as caught:
        mark_cancelled(submission, [TaskId("7", 0)])
    assert caught.value.where == str(path) and caught.value.way_out
    assert not (submission.folder / "cancelled.json").exists()
