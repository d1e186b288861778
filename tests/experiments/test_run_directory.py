"""A run directory is created once and shared by studies; its damaged files are named with a way out."""

from __future__ import annotations

import copy
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from counting_stage import counting_config

from experiments.atomic_files import WriteError, append_line, remove_old_drafts, write_file
from experiments.errors import UserError
from experiments.run_directory import RunDirectory

FORK = multiprocessing.get_context("fork")


def with_benchmark(config: dict[str, Any], name: str, **changes: Any) -> dict[str, Any]:
    changed = copy.deepcopy(config)
    changed["benchmarks"][name] = {**config["benchmarks"]["geometry"], "name": name, **changes}
    return changed


def test_created_run_gives_back_its_config(tmp_path: Path) -> None:
    config = counting_config(seed=3, rate=1.0e-7)
    run = RunDirectory.create(tmp_path, "grpo-s3-0123456789", config)
    assert run.path == tmp_path / "runs" / "grpo-s3-0123456789"
    assert run.config() == config
    assert (run.run_id, run.root) == ("grpo-s3-0123456789", tmp_path)


def test_a_new_run_has_nothing_to_read_yet(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "run", counting_config())
    assert (run.status(), run.steps(), run.results("geometry"), run.provenance()) == ({}, [], None, None)


def test_creating_again_keeps_benchmarks_of_other_studies(tmp_path: Path) -> None:
    config = counting_config()
    RunDirectory.create(tmp_path, "run", config)
    other = counting_config()
    other["benchmarks"] = {"other": {**config["benchmarks"]["geometry"], "name": "other"}}
    run = RunDirectory.create(tmp_path, "run", other)
    assert set(run.config()["benchmarks"]) == {"geometry", "other"}


def test_creating_again_takes_the_new_settings_of_a_benchmark(tmp_path: Path) -> None:
    config = counting_config()
    RunDirectory.create(tmp_path, "run", config)
    run = RunDirectory.create(tmp_path, "run", with_benchmark(config, "geometry", split="train"))
    assert run.config()["benchmarks"]["geometry"]["split"] == "train"


def test_creating_again_with_the_same_config_leaves_the_file_alone(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "run", counting_config())
    before = run.config_path.stat().st_mtime_ns
    RunDirectory.create(tmp_path, "run", counting_config())
    assert run.config_path.stat().st_mtime_ns == before


def test_two_studies_creating_one_run_at_once_lose_no_benchmark(tmp_path: Path) -> None:
    config = counting_config()
    names = [f"benchmark_{number}" for number in range(8)]
    processes = [
        FORK.Process(target=RunDirectory.create, args=(tmp_path, "run", with_benchmark(config, name)))
        for name in names
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert set(RunDirectory(tmp_path / "runs" / "run").config()["benchmarks"]) == {"geometry", *names}


def test_another_identity_under_the_same_id_is_refused(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, "run", counting_config(steps=6))
    with pytest.raises(UserError, match=r"training.steps is 6 there and 7 here") as refused:
        RunDirectory.create(tmp_path, "run", counting_config(steps=7))
    assert refused.value.exit_code == 1
    assert "config.yaml" in refused.value.where


@pytest.mark.parametrize(
    ("name", "content", "read", "where"),
    [
        ("config.yaml", "seed: 0\n a: [\n", lambda run: run.config(), "config.yaml, line 2"),
        ("status.json", '{"train":\n {"state" }}', lambda run: run.status(), "status.json, line 2"),
        ("status.json", '{"train": {"state": "asleep"}}', lambda run: run.status(), "status.json"),
        ("steps.jsonl", '{"step": 1}\n{"step" 2}\n', lambda run: run.steps(), "steps.jsonl, line 2"),
        ("eval/geometry/results.json", "{\n\n", lambda run: run.results("geometry"), "results.json, line 3"),
        ("provenance.json", "[]", lambda run: run.provenance(), "provenance.json, line 1"),
    ],
)
def test_a_damaged_file_is_named_with_its_line_and_a_way_out(
    tmp_path: Path, name: str, content: str, read: Any, where: str
) -> None:
    run = RunDirectory.create(tmp_path, "run", counting_config())
    write_file(run.path / name, content)
    with pytest.raises(UserError) as damaged:
        read(run)
    assert damaged.value.where.endswith(where) or where in damaged.value.where
    assert damaged.value.way_out


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"):
        RunDirectory(tmp_path / "runs" / "absent").config()


def test_reading_runs_needs_the_standard_library_and_yaml_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import experiments.run_directory;"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "allowed = {'experiments', 'yaml', '_yaml', 'cython_runtime'} | sys.stdlib_module_names;"
        "print(sorted(name for name in loaded - allowed if not name.startswith('_cython')))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def _in_child_with_full_disk(work: Any, size: int) -> int:
    """Run `work` in a process whose files can't grow past `size`, as on a full disk; 0 when it said so."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            work()
        except WriteError as error:
            code = 0 if "no space left" in error.what and error.exit_code == 1 else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_file(path, "old")
    assert _in_child_with_full_disk(lambda: write_file(path, "new" * 10_000), size=4096) == 0
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["status.json"]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    append_line(path, "first")
    assert _in_child_with_full_disk(lambda: append_line(path, "x" * 10_000), size=4096) == 0
    assert path.read_text() == "first\n"


def test_a_place_that_cannot_be_written_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder belongs")
    with pytest.raises(WriteError, match=r"config.lock can't be written") as refused:
        RunDirectory.create(tmp_path, "run", counting_config())
    assert str(tmp_path / "runs") in refused.value.where


def test_drafts_of_killed_writers_are_swept_once_old(tmp_path: Path) -> None:
    (tmp_path / ".status.json.0123abcd.draft").touch()
    remove_old_drafts(tmp_path, older_than=60)
    assert len(list(tmp_path.iterdir())) == 1
    remove_old_drafts(tmp_path, older_than=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_drafts_are_old_by_the_file_system_s_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    fresh, old = tmp_path / ".status.json.0123abcd.draft", tmp_path / ".status.json.4567abcd.draft"
    fresh.touch()
    old.touch()
    now = time.time()
    os.utime(old, (now - 700, now - 700))
    monkeypatch.setattr(time, "time", lambda: now + ahead)
    remove_old_drafts(tmp_path, older_than=600)
    assert list(tmp_path.iterdir()) == [fresh]
