"""Runs in MLflow: complete, once, truthful about their state, the same however often they are brought in."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, write_study

from analysis.tracking.compare import compare_runs
from analysis.tracking.names import (
    LONGEST_PARAMETER,
    PARENT_TAG,
    STUDY_TAG,
    evaluation_metrics,
    metric_name,
    parameters,
    step_metrics,
)
from analysis.tracking.store import default_uri, open_client
from analysis.tracking.sync import SyncReport, sync_study
from analysis.tracking.ui import serve
from experiments.cli import main
from experiments.errors import UserError
from experiments.identity import flattened, identity_part
from experiments.locks import acquire
from experiments.plan import Plan, plan_path
from experiments.run_directory import RunDirectory
from experiments.step_log import append_step

PROJECT = Path(__file__).parents[2]
ONE_RUN = (dataclasses.replace(GRPO, seeds=1),)
TWO_RUNS = (dataclasses.replace(GRPO, seeds=1), dataclasses.replace(FASTRL, seeds=1))


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with MLflow's tables, which take seconds to make."""
    root = tmp_path_factory.mktemp("empty")
    open_client(default_uri(root))
    return root / "tracking" / "mlflow.db"


@pytest.fixture
def root(tmp_path: Path, empty_store: Path) -> Path:
    """A results root with an empty store."""
    (tmp_path / "tracking").mkdir()
    shutil.copy(empty_store, tmp_path / "tracking" / "mlflow.db")
    return tmp_path


def only_run(root: Path, plan: Plan) -> RunDirectory:
    return RunDirectory(root / "runs" / plan.cells[0].run_id)


def tracked_runs(root: Path, study: str = "laptop") -> dict[str, Any]:
    """MLflow's own view of a study's runs, by name."""
    client = open_client(default_uri(root))
    experiment = client.get_experiment_by_name(study)
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return {run.info.run_name: run for run in runs if PARENT_TAG in run.data.tags}


def history(root: Path, run: Any, metric: str) -> list[tuple[int, float]]:
    """Every value that MLflow has of a metric, with its step, in the order of steps."""
    values = open_client(default_uri(root)).get_metric_history(run.info.run_id, metric)
    return sorted((value.step, value.value) for value in values)


def rows(root: Path) -> dict[str, list[Any]]:
    """The content of the tables that a sync writes to."""
    with sqlite3.connect(root / "tracking" / "mlflow.db") as connection:
        return {
            table: sorted(connection.execute(f"select * from {table}").fetchall(), key=repr)
            for table in ("runs", "metrics", "latest_metrics", "params", "tags", "experiments")
        }


def forget_last_sync(root: Path) -> None:
    (root / "tracking" / "laptop.digest").unlink()


def write_states(run: RunDirectory, states: dict[str, str | None]) -> None:
    """Give the stages other states; None: never tried."""
    entries = json.loads(run.status_path.read_text())
    for stage, state in states.items():
        if state is None:
            del entries[stage]
        else:
            entries[stage]["state"] = state
    run.status_path.write_text(json.dumps(entries))


def test_a_run_arrives_with_parameters_metrics_by_step_tags_and_artefacts(root: Path) -> None:
    plan = write_study(root, TWO_RUNS)
    report = sync_study(root, "laptop", None)
    assert (report.added, report.updated, report.unchanged, report.not_started) == (2, 0, 0, 0)

    tracked = tracked_runs(root)
    assert tracked.keys() == {cell.run_id for cell in plan.cells}
    for cell in plan.cells:
        run, directory = tracked[cell.run_id], RunDirectory(root / "runs" / cell.run_id)
        config = flattened(identity_part(directory.config()))
        assert run.data.params == {key: str(value) for key, value in config.items()}
        for key in ("gen", "step"):
            expected = [
                (record["step"], record[f"cpu_s/{key}"]) for record in directory.steps() if record["step"]
            ]
            assert history(root, run, f"cpu_s/{key}") == expected
        accuracy = [
            (record["step"], record["val/accuracy"])
            for record in directory.steps()
            if "val/accuracy" in record
        ]
        assert history(root, run, "val/accuracy") == accuracy
        results = directory.results(IN_DOMAIN)
        assert results is not None
        passed = results["decodings"]["t1"]["metrics"]["pass_at_8"]
        assert run.data.metrics[f"eval/{IN_DOMAIN}/t1/pass_at_8"] == passed
        tags = run.data.tags
        assert (tags["method"], tags["seed"], tags["arm"]) == (cell.method, "0", cell.arm)
        assert (tags["git_commit"], tags["source"]) == ("0123456789abcdef", "measured")
        assert tags.get("tau") == (None if cell.tau is None else "0.8")
        assert run.info.status == "FINISHED"
        inputs = open_client(default_uri(root)).get_run(run.info.run_id).inputs.dataset_inputs
        assert [(each.dataset.name, each.dataset.digest) for each in inputs] == [
            ("laptop_geometry/train", "7ra1")
        ]
        artefacts = Path(run.info.artifact_uri.removeprefix("file://"))
        for name in ("config.yaml", "provenance.json", "steps.jsonl", f"eval/{IN_DOMAIN}/results.json"):
            assert (artefacts / name).read_bytes() == (directory.path / name).read_bytes()
        assert artefacts.is_relative_to(root / "tracking" / "artifacts")


def test_a_second_sync_changes_nothing(root: Path) -> None:
    write_study(root, TWO_RUNS)
    sync_study(root, "laptop", None)
    before = rows(root)
    assert sync_study(root, "laptop", None).unchanged == 2
    forget_last_sync(root)
    assert sync_study(root, "laptop", None) == SyncReport("laptop", default_uri(root), 0, 0, 2, 0, 0)
    assert rows(root) == before


def test_mlflow_is_not_imported_when_nothing_has_changed(root: Path) -> None:
    write_study(root, ONE_RUN)
    sync_study(root, "laptop", None)
    code = (
        "import sys; from pathlib import Path; from analysis.tracking.sync import sync_study;"
        f"assert sync_study(Path({str(root)!r}), 'laptop', None).unchanged == 1;"
        "assert 'mlflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_growing_run_gets_only_its_new_steps(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    lines = run.steps_path.read_text().splitlines(keepends=True)
    run.steps_path.write_text("".join(lines[:11]))
    write_states(run, {"train": "preempted", **dict.fromkeys(list(run.status())[1:], None)})
    sync_study(root, "laptop", None)
    [tracked] = tracked_runs(root).values()
    assert tracked.info.status == "KILLED"
    first = rows(root)["metrics"]

    run.steps_path.write_text("".join(lines))
    report = sync_study(root, "laptop", None)
    assert report.updated == 1
    second = rows(root)["metrics"]
    assert report.metrics == len(second) - len(first)
    assert set(first) < set(second)
    [grown] = tracked_runs(root).values()
    assert grown.info.run_id == tracked.info.run_id
    assert [step for step, _ in history(root, grown, "timing_s/gen")] == list(range(1, 41))


def test_steps_that_a_resumed_run_took_back_are_not_kept(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    records = run.steps()
    sync_study(root, "laptop", None)
    run.steps_path.write_text("".join(json.dumps(record) + "\n" for record in records[:20]))
    for record in records[20:30]:
        append_step(run.steps_path, {**record, "timing_s/gen": record["timing_s/gen"] + 1})
    sync_study(root, "laptop", None)
    [tracked] = tracked_runs(root).values()
    expected = [(record["step"], record["timing_s/gen"]) for record in run.steps() if record["step"]]
    assert history(root, tracked, "timing_s/gen") == expected


def test_a_new_evaluation_replaces_the_value_that_mlflow_shows(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    sync_study(root, "laptop", None)
    results = run.results(IN_DOMAIN)
    assert results is not None
    results["decodings"]["t1"]["metrics"]["accuracy"] = 0.125
    run.results_path(IN_DOMAIN).write_text(json.dumps(results))
    written = time.time() + 1
    os.utime(run.results_path(IN_DOMAIN), (written, written))
    sync_study(root, "laptop", None)
    [tracked] = tracked_runs(root).values()
    assert tracked.data.metrics[f"eval/{IN_DOMAIN}/t1/accuracy"] == 0.125


def test_a_study_that_renames_a_row_renames_it_in_mlflow(root: Path) -> None:
    plan = write_study(root, ONE_RUN)
    sync_study(root, "laptop", None)
    renamed = json.loads(plan_path(root, "laptop").read_text())
    renamed["cells"][0]["label"] = "GRPO, n=8"
    plan_path(root, "laptop").write_text(json.dumps(renamed))
    assert sync_study(root, "laptop", None).updated == 1
    assert tracked_runs(root)[plan.cells[0].run_id].data.tags["label"] == "GRPO, n=8"


EVALUATION = f"evaluate-{IN_DOMAIN}"


@pytest.mark.parametrize(
    ("states", "held", "expected"),
    [
        ({}, None, "FINISHED"),
        ({"train": "running"}, "train", "RUNNING"),
        ({"train": "running"}, None, "KILLED"),
        ({"train": "interrupted"}, None, "KILLED"),
        ({"train": "failed"}, None, "FAILED"),
        ({EVALUATION: "failed"}, None, "FAILED"),
        ({EVALUATION: "running"}, EVALUATION, "RUNNING"),
        ({EVALUATION: None}, None, "SCHEDULED"),
        ({"train": "failed", EVALUATION: "running"}, EVALUATION, "RUNNING"),
    ],
)
def test_the_state_is_that_of_the_stages(
    root: Path, states: dict[str, str | None], held: str | None, expected: str
) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    run.steps_path.write_text("")
    write_states(run, states)
    lock = acquire(run.lock_path(held)) if held else None
    sync_study(root, "laptop", None)
    if lock:
        lock.release()
    [tracked] = tracked_runs(root).values()
    assert tracked.info.status == expected
    assert (tracked.info.end_time is not None) == (expected in ("FINISHED", "FAILED", "KILLED"))


def study_run(root: Path, study: str = "laptop") -> Any:
    client = open_client(default_uri(root))
    experiment = client.get_experiment_by_name(study)
    assert experiment is not None
    [run] = [run for run in client.search_runs([experiment.experiment_id]) if STUDY_TAG in run.data.tags]
    return run


def test_the_study_is_the_parent_of_its_runs_and_ends_as_they_do(root: Path) -> None:
    plan = write_study(root, TWO_RUNS)
    first, second = (RunDirectory(root / "runs" / cell.run_id) for cell in plan.cells)
    write_states(second, {"train": "preempted", **dict.fromkeys(list(second.status())[1:], None)})
    shutil.move(first.path, root / "later")
    sync_study(root, "laptop", None)
    parent = study_run(root)
    assert (parent.info.run_name, parent.info.status) == ("laptop", "SCHEDULED")
    shutil.move(root / "later", first.path)
    sync_study(root, "laptop", None)
    assert study_run(root).info.status == "KILLED"
    write_states(second, {"train": "failed"})
    sync_study(root, "laptop", None)
    again = study_run(root)
    assert (again.info.run_id, again.info.status) == (parent.info.run_id, "FAILED")
    for run in tracked_runs(root).values():
        assert run.data.tags[PARENT_TAG] == parent.info.run_id


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


def test_a_run_that_was_never_tried_is_not_there(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    run.status_path.unlink()
    assert sync_study(root, "laptop", None).not_started == 1
    assert tracked_runs(root) == {}


def test_runs_are_compared_by_their_tags(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write_study(root, (dataclasses.replace(GRPO, seeds=3), dataclasses.replace(FASTRL, seeds=2)))
    sync_study(root, "laptop", None)
    metric = f"eval/{IN_DOMAIN}/t1/accuracy"
    comparison = compare_runs(default_uri(root), "laptop", metric, ("method", "tau"))
    assert {group.values for group in comparison.groups} == {("grpo", "—"), ("fastrl", "0.8")}
    by_name = {group.values[0]: group.estimate for group in comparison.groups}
    for method, seeds in (("grpo", 3), ("fastrl", 2)):
        results = [
            RunDirectory(root / "runs" / cell.run_id).results(IN_DOMAIN) or {}
            for cell in plan.cells
            if cell.method == method
        ]
        values = [each["decodings"]["t1"]["metrics"]["accuracy"] for each in results]
        estimate = by_name[method]
        assert estimate is not None and estimate.value == pytest.approx(sum(values) / seeds)
        assert (estimate.ci is None) == (seeds < 3)
    (pooled,) = compare_runs(default_uri(root), "laptop", metric, ("model",)).groups
    assert (pooled.arms, len(pooled.runs)) == (2, 5)
    assert pooled.estimate is not None and pooled.estimate.ci is None, "runs of a seed are not independent"
    plot = tmp_path / "plot.svg"
    words = ["compare", "study=laptop", f"metric={metric}", "by=label", f"paths.root={root}"]
    assert main([*words, "--plot", str(plot)]) == 0
    assert "FastRL" in capsys.readouterr().out
    assert plot.read_bytes().startswith(b"<?xml")
    for wrong, message in ((f"metric={metric}x", "no such"), ("by=methode", 'did you mean "method"')):
        key = wrong.partition("=")[0]
        assert main([*(word for word in words if not word.startswith(key)), wrong]) == 2
        assert message.replace("no such", "has a metric") in capsys.readouterr().err


def test_a_label_can_not_steer_the_terminal(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = dataclasses.replace(GRPO, seeds=1, label="GRPO\x1b[2J$(reboot) `x`")
    write_study(root, (hostile,))
    sync_study(root, "laptop", None)
    assert main(["compare", "study=laptop", "metric=rollout/n", f"paths.root={root}"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "$(reboot)" in shown


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


def test_a_sync_killed_half_way_leaves_nothing_twice(root: Path) -> None:
    write_study(root, (dataclasses.replace(GRPO, seeds=4),))
    process = subprocess.Popen([sys.executable, "-c", SYNC, str(root)])
    while process.poll() is None and not rows(root)["metrics"]:
        time.sleep(0.02)
    process.kill()
    process.wait()
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


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_metric_name_has_letters_digits_underscores_and_slashes_only(parts: list[str]) -> None:
    assert set(metric_name(*parts)) <= set("/_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def test_only_numbers_become_metrics() -> None:
    record = {"step": 3, "time": 1.5, "epoch": 1, "rollout/n": 8, "note": "x", "flag": True, "val@k=8": 0.5}
    assert step_metrics(record) == {"epoch": 1.0, "rollout/n": 8.0, "val_k_8": 0.5}


def test_two_keys_with_one_metric_name_are_refused() -> None:
    with pytest.raises(ValueError, match="a_b"):
        step_metrics({"step": 1, "a=b": 1.0, "a@b": 2.0})


def test_a_value_that_is_no_number_is_refused() -> None:
    results = {"benchmark": "b", "decodings": {"t1": {"metrics": {"accuracy": float("nan")}}}}
    with pytest.raises(ValueError, match="eval/b/t1/accuracy is nan"):
        evaluation_metrics(results)


def test_a_value_longer_than_mlflow_takes_is_cut_and_whole_in_the_artefact(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    config = run.config()
    config["dataset"]["names"] = ["name"] * LONGEST_PARAMETER
    assert len(parameters(config)["dataset.names"]) == LONGEST_PARAMETER
    run.config_path.write_text(yaml.safe_dump(config))
    sync_study(root, "laptop", None)
    [tracked] = tracked_runs(root).values()
    assert tracked.data.params["dataset.names"].endswith("...")


def test_pages_without_runs_or_port_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No runs have been tracked"):
        serve(tmp_path, "127.0.0.1", 5000)
    (tmp_path / "tracking").mkdir()
    (tmp_path / "tracking" / "mlflow.db").touch()
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(UserError, match=f"127.0.0.1:{port}: Address already in use") as raised:
            serve(tmp_path, "127.0.0.1", port)
    assert raised.value.way_out.endswith(f"--port {port + 1}")


SERVE = (
    "import sys; from pathlib import Path; from analysis.tracking.ui import serve;"
    "sys.exit(serve(Path(sys.argv[1]), '127.0.0.1', int(sys.argv[2])))"
)


@pytest.fixture(scope="module")
def served(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A results root with two tracked runs, and the address of MLflow's pages on it."""
    root = tmp_path_factory.mktemp("served")
    (root / "tracking").mkdir()
    shutil.copy(empty_store, root / "tracking" / "mlflow.db")
    write_study(root, TWO_RUNS)
    sync_study(root, "laptop", None)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    command = [sys.executable, "-c", SERVE, str(root), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert f"at http://127.0.0.1:{port}/#/experiments" in process.stdout.readline()
    yield root, f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.slow
@pytest.mark.browser
def test_mlflow_pages_show_the_runs(served: tuple[Path, str], page_text: Callable[[str], str]) -> None:
    root, address = served
    experiment = open_client(default_uri(root)).get_experiment_by_name("laptop")
    assert experiment is not None
    by_name = urllib.parse.urlencode({"orderByKey": "attributes.run_name", "orderByAsc": "true"})
    page = page_text(f"{address}/#/experiments/{experiment.experiment_id}/runs?{by_name}")
    assert "Training runs" in page
    for name in tracked_runs(root):
        assert name in page


@pytest.mark.slow
@pytest.mark.browser
def test_mlflow_pages_draw_runs_side_by_side(
    served: tuple[Path, str], page_text: Callable[[str], str]
) -> None:
    root, address = served
    runs = tracked_runs(root)
    identifiers = json.dumps([run.info.run_id for run in runs.values()])
    experiments = json.dumps([run.info.experiment_id for run in runs.values()][:1])
    query = urllib.parse.urlencode({"runs": identifiers, "experiments": experiments})
    page = page_text(f"{address}/#/compare-runs?{query}")
    assert "Parallel Coordinates" in page
    assert re.search(r"<svg[^>]*main-svg", page), "a chart of Plotly"
    for name in runs:
        assert name in page


@pytest.mark.slow
def test_a_server_takes_runs_as_the_file_does(served: tuple[Path, str], tmp_path: Path) -> None:
    root, address = served
    [arm] = ONE_RUN
    plan = write_study(tmp_path, [dataclasses.replace(arm, label="GRPO elsewhere")], study="remote")
    assert sync_study(tmp_path, "remote", address).added == 1
    assert sync_study(tmp_path, "remote", address).unchanged == 1
    assert tracked_runs(root, "remote").keys() == {plan.cells[0].run_id}
    assert not (tmp_path / "tracking" / "mlflow.db").exists()
