"""Bringing runs into MLflow while they grow, after kills, and with damage on either side."""

from __future__ import annotations

import dataclasses
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, write_study
from tracked_study import (
    ONE_RUN,
    TWO_RUNS,
    history,
    only_run,
    rows,
    tracked_runs,
    write_states,
)

from analysis.tracking.sync import sync_study
from experiments.errors import UserError
from experiments.run_directory import RunDirectory

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def root(tracked_root: Path) -> Path:
    return tracked_root


def nan(run: RunDirectory) -> None:
    path = run.results_path(IN_DOMAIN)
    path.write_text(path.read_text().replace('"accuracy": 0.', '"accuracy": NaN, "x": 0.', 1))


def doubled_samples(run: RunDirectory) -> None:
    table = pq.read_table(run.samples_path(IN_DOMAIN))
    pq.write_table(pa.concat_tables([table, table.slice(3, 1)]), run.samples_path(IN_DOMAIN))


@pytest.mark.parametrize(("spoil", "reason"), [(nan, "accuracy is nan"), (doubled_samples, "is there twice")])
def test_a_run_with_doubtful_results_is_named_each_time_and_the_others_are_tracked(
    root: Path, spoil: Callable[[RunDirectory], None], reason: str
) -> None:
    plan = write_study(root, [dataclasses.replace(GRPO, seeds=3)])
    spoilt = RunDirectory(root / "runs" / plan.cells[0].run_id)
    spoil(spoilt)
    for _ in range(2):
        with pytest.raises(UserError, match=f"1 of 3 runs can't be tracked.*{reason}") as caught:
            sync_study(root, "laptop", None)
        assert f"runs/{spoilt.run_id}/eval/{IN_DOMAIN}" in caught.value.where
        assert set(tracked_runs(root)) == {cell.run_id for cell in plan.cells[1:]}


def test_results_of_an_evaluation_that_is_still_going_on_are_not_held_against_samples(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    doubled_samples(run)
    status = json.loads(run.status_path.read_text())
    status[f"evaluate-{IN_DOMAIN}"]["state"] = "preempted"
    run.status_path.write_text(json.dumps(status))
    assert sync_study(root, "laptop", None).added == 1


WRITE = """
import json, sys, time
from pathlib import Path
from experiments.step_log import append_step
path, whole, second_half = map(Path, sys.argv[1:])
lines = whole.read_text().splitlines()
for number, line in enumerate(lines):
    while number == len(lines) // 2 and not second_half.exists():
        time.sleep(0.02)
    append_step(path, json.loads(line))
    time.sleep(0.02)
"""


def test_sixteen_runs_that_grow_at_once_lose_nothing(root: Path) -> None:
    plan = write_study(root, (dataclasses.replace(GRPO, seeds=8), dataclasses.replace(FASTRL, seeds=8)))
    runs = [RunDirectory(root / "runs" / cell.run_id) for cell in plan.cells]
    writers = []
    for run in runs:
        keys = ("step", "time", "epoch", "cpu_s/gen", "actor/entropy")
        records = [{key: record[key] for key in keys if key in record} for record in run.steps()[1:]]
        whole = root / f"{run.run_id}.jsonl"
        whole.write_text("".join(json.dumps(record) + "\n" for record in records))
        run.steps_path.write_text("")
        write_states(run, {"train": "running", **dict.fromkeys(list(run.status())[1:], None)})
        command = [sys.executable, "-c", WRITE, str(run.steps_path), str(whole), str(root / "second half")]
        writers.append(subprocess.Popen(command, cwd=PROJECT))
    while any(writer.poll() is None for writer in writers):
        sync_study(root, "laptop", None)
        (root / "second half").touch()
    assert [writer.returncode for writer in writers] == [0] * 16
    sync_study(root, "laptop", None)
    tracked = tracked_runs(root)
    assert len(tracked) == 16
    for run in runs:
        records = [json.loads(line) for line in (root / f"{run.run_id}.jsonl").read_text().splitlines()]
        for key in ("cpu_s/gen", "actor/entropy"):
            expected = [(record["step"], record[key]) for record in records]
            assert history(root, tracked[run.run_id], key) == expected


def test_a_damaged_run_is_named_and_the_others_are_tracked(root: Path) -> None:
    plan = write_study(root, TWO_RUNS)
    damaged = only_run(root, plan).steps_path
    damaged.write_text('{"step": 1}\n{"step"\n{"step": 3}\n')
    with pytest.raises(UserError, match=r"1 of 2 runs") as raised:
        sync_study(root, "laptop", None)
    assert raised.value.where == f"{damaged}, line 2"
    assert tracked_runs(root).keys() == {plan.cells[1].run_id}


def test_variables_of_the_environment_lead_nowhere_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "f" * 32)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "77")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'elsewhere.db'}")
    plan = write_study(root, ONE_RUN)
    sync_study(root, "laptop", None)
    assert tracked_runs(root).keys() == {plan.cells[0].run_id}
    assert not (root / "elsewhere.db").exists()


SYNC = (
    "import sys; from pathlib import Path; from analysis.tracking.sync import sync_study;"
    "print(sync_study(Path(sys.argv[1]), 'laptop', None))"
)


KILLED = """
import os, signal
from mlflow import MlflowClient
whole, batches = MlflowClient.log_batch, []
def until_the_second_run(self, run_id, *arguments, **options):
    batches.append(run_id)
    if len(set(batches)) == 3 and options.get("metrics"):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(self, run_id, *arguments, **options)
MlflowClient.log_batch = until_the_second_run
"""


def test_a_sync_killed_half_way_leaves_nothing_twice(root: Path) -> None:
    write_study(root, (dataclasses.replace(GRPO, seeds=4),))
    process = subprocess.run([sys.executable, "-c", KILLED + SYNC, str(root)], check=False)
    assert process.returncode == -signal.SIGKILL
    half = rows(root)["metrics"]
    assert not (root / "tracking" / "laptop.digest").exists()
    sync_study(root, "laptop", None)
    whole = rows(root)["metrics"]
    assert half and set(half) < set(whole)

    tracked = tracked_runs(root)
    for name, run in tracked.items():
        expected = [
            (record["step"], record["timing_s/gen"])
            for record in RunDirectory(root / "runs" / name).steps()
            if record["step"]
        ]
        assert history(root, run, "timing_s/gen") == expected
    assert len(tracked) == 4


@pytest.mark.slow
def test_processes_that_start_at_once_make_one_store(tmp_path: Path) -> None:
    plan = write_study(tmp_path, TWO_RUNS)
    processes = [
        subprocess.Popen([sys.executable, "-c", SYNC, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted("2 new" in output for output in outputs) == [False, True]
    assert tracked_runs(tmp_path).keys() == {cell.run_id for cell in plan.cells}


def test_a_server_that_does_not_answer_is_named_without_its_password(root: Path) -> None:
    write_study(root, ONE_RUN)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(UserError, match="does not answer") as raised:
        sync_study(root, "laptop", f"http://ada:secret@127.0.0.1:{port}")
    assert raised.value.where == f"http://127.0.0.1:{port}"
    assert "secret" not in str(raised.value)


def test_a_damaged_store_is_named(root: Path) -> None:
    write_study(root, ONE_RUN)
    (root / "tracking" / "mlflow.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(UserError, match="can't be opened") as raised:
        sync_study(root, "laptop", None)
    assert "mlflow.db" in raised.value.way_out
