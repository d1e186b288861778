"""Runs in MLflow: complete, once, truthful about their state, the same however often they are brought in."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, write_evaluation, write_study
from tracked_study import (
    ONE_RUN,
    TWO_RUNS,
    forget_last_sync,
    history,
    only_run,
    rows,
    tracked_runs,
    write_states,
)

from analysis.tracking.compare import compare_runs
from analysis.tracking.names import (
    LONGEST_PARAMETER,
    PARENT_TAG,
    STUDY_TAG,
    parameters,
)
from analysis.tracking.store import default_uri, open_client
from analysis.tracking.sync import SyncReport, sync_study
from experiments.cli import main
from experiments.identity import flattened, identity_part
from experiments.locks import acquire
from experiments.plan import plan_path
from experiments.run_directory import RunDirectory
from experiments.step_log import append_step

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def root(tracked_root: Path) -> Path:
    return tracked_root


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
    accuracy = {"t1": 0.125, "t0_6": 0.25, "greedy": 0.5}
    write_evaluation(run.evaluation_path(IN_DOMAIN), accuracy, "again", np.random.default_rng(0))
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


def test_a_value_longer_than_mlflow_takes_is_cut_and_whole_in_the_artefact(root: Path) -> None:
    run = only_run(root, write_study(root, ONE_RUN))
    config = run.config()
    config["dataset"]["names"] = ["name"] * LONGEST_PARAMETER
    assert len(parameters(config)["dataset.names"]) == LONGEST_PARAMETER
    run.config_path.write_text(yaml.safe_dump(config))
    sync_study(root, "laptop", None)
    [tracked] = tracked_runs(root).values()
    assert tracked.data.params["dataset.names"].endswith("...")
