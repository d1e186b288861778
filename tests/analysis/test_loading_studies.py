"""From run directories to frames: what counts, what is set aside, and how it is named."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, STEPS, write_study

from analysis.file_digests import content_digest, file_digests
from analysis.problems import problems
from analysis.step_frames import _by_columns, _by_records
from analysis.study import Study, load_study
from experiments.errors import UserError

STEP_RECORD = 12
"""A line of steps.jsonl that is spoilt; line 1 is step 0."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_study(tmp_path, [GRPO, FASTRL])
    return tmp_path


def run_folder(root: Path, seed: int = 1) -> Path:
    return root / "runs" / GRPO.run_id(seed)


def rewrite_step(root: Path, change: Callable[[dict[str, Any]], object], line: int = STEP_RECORD) -> None:
    path = run_folder(root) / "steps.jsonl"
    lines = path.read_text().splitlines()
    record = json.loads(lines[line - 1])
    change(record)
    lines[line - 1] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")


def rewrite_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def only_set_aside(study: Study) -> tuple[str, str]:
    (aside,) = study.set_aside
    assert aside.cell.run_id == GRPO.run_id(1)
    assert aside.cell.run_id not in study.records
    assert len(study.records) == 9
    for frame in (study.steps, study.validations, study.evaluations):
        assert aside.cell.run_id not in set(frame["run_id"])
    return aside.where, aside.reason


def test_every_finished_run_is_in_every_frame(root: Path) -> None:
    study = load_study(root, "laptop")
    run_ids = {cell.run_id for cell in study.plan.cells}
    assert set(study.records) == run_ids
    for frame in (study.steps, study.validations, study.evaluations):
        assert set(frame["run_id"]) == run_ids
    assert (study.steps.groupby("run_id").size() == STEPS).all()
    assert study.set_aside == () and study.unfinished == () and problems(study) == ()


def test_clock_adds_up_the_seconds_of_the_steps(root: Path) -> None:
    study = load_study(root, "laptop")
    run = study.steps[study.steps["run_id"] == GRPO.run_id(0)]
    assert run["clock/total"].iloc[-1] == pytest.approx(run["cpu_s/step"].sum())
    last = study.validations[study.validations["run_id"] == GRPO.run_id(0)].iloc[-1]
    assert last["clock"] == pytest.approx(run["cpu_s/step"].sum())
    assert last["step"] == STEPS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda step: step.update({"actor/entropy": math.nan}), "actor/entropy is nan"),
        (lambda step: step.update({"cpu_s/step": math.inf}), "cpu_s/step is inf"),
        (lambda step: step.pop("cpu_s/gen"), "no number for cpu_s/gen"),
        (lambda step: step.update({"epoch": "two"}), "epoch is 'two', not a number"),
        (lambda step: step.update({"epoch": None}), "no number for epoch"),
        (lambda step: step.update({"actor/loss": "oops"}), "actor/loss is 'oops', not a number"),
        (lambda step: step.update({"val/accuracy": True}), "val/accuracy is True, not a number"),
        (lambda step: step.update({"time": step["time"] - 1000}), "time goes back by"),
        (lambda step: step.update({"val/accuracy": 1.5}), "val/accuracy is 1.5"),
    ],
)
def test_a_spoilt_step_sets_its_run_aside_by_file_and_line(
    root: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    rewrite_step(root, change)
    where, found = only_set_aside(load_study(root, "laptop"))
    assert where == f"runs/{GRPO.run_id(1)}/steps.jsonl, line {STEP_RECORD}"
    assert reason in found


def test_two_attempts_that_wrote_the_same_step_are_named(root: Path) -> None:
    path = run_folder(root) / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:20], *lines[15:]]))
    where, reason = only_set_aside(load_study(root, "laptop"))
    assert where.endswith("steps.jsonl, line 21")
    assert "step 15 follows step 19" in reason


def test_a_run_of_another_schema_version_is_set_aside(root: Path) -> None:
    path = run_folder(root) / "config.yaml"
    path.write_text(path.read_text().replace("schema_version: 1", "schema_version: 2"))
    where, reason = only_set_aside(load_study(root, "laptop"))
    assert where.endswith("config.yaml") and reason == "schema_version 2, this version reads 1"


def test_seconds_below_zero_are_a_clock_that_went_backwards(root: Path) -> None:
    rewrite_step(root, lambda step: step.update({"cpu_s/gen": -0.5}))
    where, reason = only_set_aside(load_study(root, "laptop"))
    assert where.endswith(f"line {STEP_RECORD}") and reason == "cpu_s/gen is -0.5: the clock went backwards"


@pytest.mark.parametrize("clock", ["cpu_s", "timing_s"])
def test_a_log_read_by_columns_is_the_log_read_by_records(root: Path, clock: str) -> None:
    path = run_folder(root) / "steps.jsonl"
    by_columns = _by_columns(path, clock)
    assert by_columns is not None
    by_records = _by_records(path, clock)
    assert set(by_columns.columns) == set(by_records.columns)
    assert by_records[by_columns.columns].astype(float).equals(by_columns.astype(float))


def test_a_touched_file_is_read_again_and_an_untouched_one_is_not(tmp_path: Path) -> None:
    log, index = tmp_path / "log", tmp_path / "index.json"
    log.write_text("one")
    ((_, first),) = file_digests([log], index)
    time.sleep(2.1)
    assert dict(file_digests([log], index)) == {log: first}
    entry = json.loads(index.read_text())
    index.write_text(json.dumps({str(log): [*entry[str(log)][:-1], "remembered"]}))
    assert dict(file_digests([log], index)) == {log: "remembered"}
    times = log.stat()
    log.write_text("two")
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert dict(file_digests([log], index))[log] not in ("remembered", first)


def test_of_samples_only_the_columns_that_are_read_count(tmp_path: Path) -> None:
    columns = {
        "decoding": ["t1", "t1"],
        "question_id": ["a", "b"],
        "response": ["x", "y"],
        "extracted": ["1", "2"],
        "correct": [True, False],
    }
    digests = []
    changes = ({"correct": [True, True]}, {"question_id": ["a", "c"]}, {"extracted": ["1", "3"]})
    for change in ({}, {"response": ["z", "y"]}, *changes):
        path = tmp_path / "samples.parquet"
        pq.write_table(pa.table(columns | change), path)
        digests.append(content_digest(path))
    assert digests[0] == digests[1] and len(set(digests)) == 4


def test_of_any_other_table_everything_counts(tmp_path: Path) -> None:
    path, digests = tmp_path / "questions.parquet", set()
    for prompt in ("find x", "find y"):
        pq.write_table(pa.table({"question_id": ["a"], "prompt": [prompt]}), path)
        digests.add(content_digest(path))
    assert len(digests) == 2


def test_a_gap_in_the_steps_is_named(root: Path) -> None:
    path = run_folder(root) / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:10] + lines[11:]))
    where, reason = only_set_aside(load_study(root, "laptop"))
    assert where.endswith("steps.jsonl, line 11")
    assert reason == "step 11 follows step 9"


def test_a_mean_over_nothing_is_null_and_no_fault(root: Path) -> None:
    rewrite_step(root, lambda step: step.update({"actor/entropy": None}))
    assert load_study(root, "laptop").set_aside == ()


def test_a_truncated_line_is_named(root: Path) -> None:
    path = run_folder(root) / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[20] = lines[20][:40] + "\n"
    path.write_text("".join(lines))
    where, _ = only_set_aside(load_study(root, "laptop"))
    assert where.endswith("steps.jsonl, line 21")


@pytest.mark.parametrize("kept_lines", [1, 9, 39, 41 - 8])
def test_a_log_that_ends_early_is_refused(root: Path, kept_lines: int) -> None:
    path = run_folder(root) / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept_lines]))
    where, _ = only_set_aside(load_study(root, "laptop"))
    assert where.endswith(f"steps.jsonl, line {kept_lines}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda results: results.update(schema=2), "schema 2, this version reads 1"),
        (lambda results: results["decodings"]["t1"]["metrics"].update(accuracy=math.nan), "nan, not within"),
        (lambda results: results["decodings"]["t1"]["metrics"].update(accuracy=True), "True, not within"),
        (lambda results: results["decodings"]["t1"]["metrics"].pop("accuracy"), "no metrics.accuracy"),
        (lambda results: results["decodings"]["t1"].pop("temperature"), "no temperature"),
        (lambda results: results.update(decodings={}), "no decodings"),
        (lambda results: results.update(settings_digest="another"), "evaluated with"),
    ],
)
def test_a_spoilt_evaluation_sets_its_run_aside(
    root: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    rewrite_json(run_folder(root) / "eval" / IN_DOMAIN / "results.json", change)
    where, found = only_set_aside(load_study(root, "laptop"))
    assert where == f"runs/{GRPO.run_id(1)}/eval/{IN_DOMAIN}/results.json"
    assert reason in found


def test_missing_results_of_a_finished_evaluation_are_a_fault(root: Path) -> None:
    (run_folder(root) / "eval" / IN_DOMAIN / "results.json").unlink()
    _, reason = only_set_aside(load_study(root, "laptop"))
    assert "results are missing" in reason


@pytest.mark.parametrize("name", ["config.yaml", "status.json", "provenance.json"])
def test_an_unreadable_file_is_named(root: Path, name: str) -> None:
    (run_folder(root) / name).write_text("{ [")
    where, _ = only_set_aside(load_study(root, "laptop"))
    assert where.startswith(f"runs/{GRPO.run_id(1)}/{name}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hardware": "x"}, "hardware is 'x', not a mapping"),
        ({"hardware": {"gpus": "H20"}}, "hardware.gpus is 'H20', not a list of names"),
        ({"data": [1]}, "data is [1], not a mapping"),
        ({"imported": "trl"}, "imported is 'trl', not a mapping"),
        ({"steps": "40"}, "steps is '40', not a number"),
    ],
)
def test_a_spoilt_provenance_sets_its_run_aside(root: Path, change: dict[str, Any], reason: str) -> None:
    rewrite_json(run_folder(root) / "provenance.json", lambda provenance: provenance.update(change))
    where, found = only_set_aside(load_study(root, "laptop"))
    assert where == f"runs/{GRPO.run_id(1)}/provenance.json" and found == reason


def test_a_run_of_another_seed_than_planned_is_set_aside(root: Path) -> None:
    path = run_folder(root) / "config.yaml"
    path.write_text(path.read_text().replace("seed: 1", "seed: 7"))
    _, reason = only_set_aside(load_study(root, "laptop"))
    assert reason == "seed 7, but the plan has 1"


def test_an_unfinished_training_counts_for_nothing_and_is_listed(root: Path) -> None:
    rewrite_json(run_folder(root) / "status.json", lambda status: status["train"].update(state="running"))
    study = load_study(root, "laptop")
    assert GRPO.run_id(1) not in set(study.steps["run_id"])
    assert [(each.cell.run_id, each.stage, each.state) for each in study.unfinished] == [
        (GRPO.run_id(1), "train", "running")
    ]


def test_an_unfinished_evaluation_leaves_the_training_in(root: Path) -> None:
    stage = f"evaluate-{IN_DOMAIN}"
    rewrite_json(run_folder(root) / "status.json", lambda status: status[stage].update(state="failed"))
    study = load_study(root, "laptop")
    assert GRPO.run_id(1) in set(study.steps["run_id"])
    mine = study.evaluations[study.evaluations["run_id"] == GRPO.run_id(1)]
    assert IN_DOMAIN not in set(mine["benchmark"])


def test_a_run_that_was_never_started_is_listed(root: Path) -> None:
    run_folder(root).rename(root / "elsewhere")
    study = load_study(root, "laptop")
    assert {each.state for each in study.unfinished} == {"not started"}
    assert problems(study)[0] == "1 of 10 runs missing or incomplete; tables and figures show the rest."
    assert "train not started: GRPO, seeds 1." in problems(study)


def test_problems_of_another_code_version_are_told(root: Path) -> None:
    path = run_folder(root) / "provenance.json"
    rewrite_json(path, lambda provenance: provenance.update(commit="feedface", dirty=True))
    told = problems(load_study(root, "laptop"))
    assert "The runs come from 2 versions of the code: 0123456789, feedface." in told
    assert "1 runs were trained with uncommitted changes in the code." in told


def test_an_unknown_study_is_an_error_with_a_way_out(root: Path) -> None:
    with pytest.raises(UserError, match="no plan of the study"):
        load_study(root, "nowhere")


def test_the_first_arm_stands_in_for_a_baseline_that_the_plan_lacks(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO], "odd", baseline="ppo")
    odd = load_study(tmp_path, "odd")
    assert not odd.has_baseline
    assert odd.baseline is odd.arms[0]
    assert any('"ppo" has no run' in problem for problem in problems(odd))


def test_an_unknown_clock_is_an_error(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO], "odd", clock="lunar")
    with pytest.raises(UserError, match='no clock "lunar"'):
        load_study(tmp_path, "odd")


def test_a_plan_without_cells_is_an_error_with_a_way_out(root: Path) -> None:
    path = root / "studies" / "laptop" / "plan.json"
    rewrite_json(path, lambda plan: plan.update(cells=[]))
    with pytest.raises(UserError, match='The study "laptop" has no cells') as caught:
        load_study(root, "laptop")
    assert caught.value.where == str(path) and caught.value.way_out
