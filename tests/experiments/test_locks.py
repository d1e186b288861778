"""Locks: one live holder at a time, dead holders are replaced, and of several takers one wins."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
import random
import subprocess
import time
from functools import cache
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from experiments import locks
from experiments.locks import (
    Holder,
    LockHeld,
    LockLost,
    acquire,
    acquire_within,
    live_holder,
    process_start,
    this_process,
)

FORK = multiprocessing.get_context("fork")


def write_lock(path: Path, holder: Holder, seconds_ago: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(holder)))
    os.utime(path, (time.time() - seconds_ago, time.time() - seconds_ago))
    return path


def dead_process() -> Holder:
    """A process of this host that held something and was killed."""
    with subprocess.Popen(["sleep", "60"]) as process:
        start = process_start(process.pid)
        process.kill()
    assert start is not None
    return dataclasses.replace(this_process(), pid=process.pid, process_start=start)


def test_a_free_lock_is_taken_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "train.lock"
    with acquire(path) as lock:
        assert live_holder(path) == lock.holder
        assert lock.holder.pid == os.getpid()
    assert live_holder(path) is None
    assert not list(path.parent.iterdir())


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "train.lock"
    with acquire(path), pytest.raises(LockHeld, match=f"process {os.getpid()} on ") as held:
        acquire(path)
    assert held.value.holder is not None


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = write_lock(tmp_path / "train.lock", dead_process())
    assert live_holder(path) is None
    with acquire(path) as lock:
        assert live_holder(path) == lock.holder


def test_a_later_process_with_the_pid_of_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    reused = dataclasses.replace(this_process(), process_start="another start")
    path = write_lock(tmp_path / "train.lock", reused)
    acquire(path).release()


def test_a_zombie_does_not_keep_the_lock(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    start = process_start(process.pid)
    assert start is not None
    zombie = dataclasses.replace(this_process(), pid=process.pid, process_start=start)
    path = write_lock(tmp_path / "train.lock", zombie)
    assert live_holder(path) == zombie
    process.kill()
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    acquire(path).release()
    process.wait()


def test_another_host_keeps_its_lock_as_long_as_it_touches_it(tmp_path: Path) -> None:
    elsewhere = dataclasses.replace(dead_process(), host="another-host", job_id="17_3")
    path = write_lock(tmp_path / "train.lock", elsewhere, seconds_ago=50)
    with pytest.raises(LockHeld, match="on another-host, Slurm job 17_3"):
        acquire(path, stale_after=60)
    acquire(path, stale_after=40).release()


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_the_clock_of_a_machine_says_nothing_of_a_holder_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    elsewhere = dataclasses.replace(dead_process(), host="another-host")
    alive = write_lock(tmp_path / "alive.lock", elsewhere, seconds_ago=20)
    dead = write_lock(tmp_path / "dead.lock", elsewhere, seconds_ago=200)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ahead)
    assert live_holder(alive) == elsewhere
    assert live_holder(dead) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive.lock", "dead.lock"]


def test_who_looks_at_many_locks_asks_for_the_time_once(tmp_path: Path) -> None:
    elsewhere = dataclasses.replace(dead_process(), host="another-host")
    paths = [write_lock(tmp_path / f"{number}.lock", elsewhere, seconds_ago=20) for number in range(3)]
    touched, asked = paths[0].stat().st_mtime, []

    def now() -> float:
        asked.append(1)
        return touched + 100.0

    clock = cache(now)
    assert [live_holder(path, now=clock) for path in paths] == [elsewhere] * 3
    assert [live_holder(path, stale_after=50, now=clock) for path in paths] == [None] * 3
    assert len(asked) == 1


def test_a_holder_is_told_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = dataclasses.replace(dead_process(), host="another-host")
    path = write_lock(tmp_path / "train.lock", elsewhere, seconds_ago=20)

    def read_only(self: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "touch", read_only)
    assert live_holder(path) == elsewhere
    assert live_holder(path, stale_after=10) is None


def test_a_holder_whose_lock_was_taken_over_notices(tmp_path: Path) -> None:
    path = tmp_path / "train.lock"
    lock = acquire(path)
    lock.touch()
    write_lock(path, dataclasses.replace(this_process(), host="another-host"))
    with pytest.raises(LockLost, match="another-host"):
        lock.touch()
    lock.release()
    assert live_holder(path) is not None


def test_a_taker_killed_while_taking_over_does_not_block_the_next(tmp_path: Path) -> None:
    dead = dead_process()
    path = write_lock(tmp_path / "train.lock", dead)
    write_lock(tmp_path / f"train.lock.after-{dead.token}", dead_process())
    with acquire(path) as lock:
        assert live_holder(path) == lock.holder


def test_an_unreadable_lock_counts_as_held_until_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / "train.lock"
    path.touch()
    with pytest.raises(LockHeld, match="just taking it"):
        acquire(path)
    os.utime(path, (1, 1))
    acquire(path).release()


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    path = write_lock(tmp_path / "train.lock", dead_process())
    with acquire(path), pytest.raises(LockHeld):
        acquire(path)
    acquire(path).release()


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    path = tmp_path / "status.lock"
    with acquire(path), pytest.raises(LockHeld):
        acquire_within(path, seconds=0.05)


def _hesitate_after_looking() -> None:
    """Widen the gap between seeing that a holder is dead and taking its lock over."""
    looks_dead = locks._is_dead

    def looks_dead_slowly(*arguments: Any) -> bool:
        dead = looks_dead(*arguments)
        time.sleep(random.Random(os.getpid()).uniform(0.0, 0.01))
        return dead

    mock.patch.object(locks, "_is_dead", looks_dead_slowly).start()


def _take(path: Path, ready: Barrier, checked: Event, winners: SimpleQueue[int]) -> None:
    _hesitate_after_looking()
    ready.wait()
    try:
        acquire(path)
    except LockHeld:
        return
    winners.put(os.getpid())
    checked.wait()


@pytest.mark.parametrize("stale", [False, True])
def test_of_many_takers_one_wins(tmp_path: Path, stale: bool) -> None:
    for turn in range(8):
        path = tmp_path / f"{turn}.lock"
        if stale:
            write_lock(path, dead_process())
        ready, checked, winners = FORK.Barrier(6), FORK.Event(), FORK.SimpleQueue()
        takers = [FORK.Process(target=_take, args=(path, ready, checked, winners)) for _ in range(6)]
        for taker in takers:
            taker.start()
        winner = winners.get()
        losers = [taker for taker in takers if taker.pid != winner]
        for loser in losers:
            loser.join(timeout=20)
        checked.set()
        assert not any(loser.is_alive() for loser in losers)
        assert winners.empty()


def _enter_and_leave(path: Path, log: Path, times: int) -> None:
    for _ in range(times):
        with acquire_within(path, seconds=300):
            with log.open("a") as stream:
                stream.write(f"in {os.getpid()}\n")
            time.sleep(0.001)
            with log.open("a") as stream:
                stream.write(f"out {os.getpid()}\n")


def test_two_are_never_inside_while_holders_are_killed(tmp_path: Path) -> None:
    path, log = tmp_path / "status.lock", tmp_path / "log"
    rng = random.Random(0)
    processes = [FORK.Process(target=_enter_and_leave, args=(path, log, 60)) for _ in range(6)]
    for process in processes:
        process.start()
    killed = set()
    for process in processes[:3]:
        time.sleep(rng.uniform(0.02, 0.1))
        process.kill()  # does nothing to one that a slow start of the others let finish
        killed.add(str(process.pid))
    for process in processes:
        process.join()
    inside = None
    for line in log.read_text().splitlines():
        word, pid = line.split()
        if word == "in":
            assert inside is None or inside in killed
            inside = pid
        else:
            assert inside == pid
            inside = None
    assert log.read_text().count("out") >= 3 * 60
