"""Values of tables: what they average, what they pair, and what they refuse to put together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from synthetic_study import FASTRL, GRPO, HARDWARE, IN_DOMAIN, SyntheticArm, write_run, write_study

from analysis.comparison import read
from analysis.measures import (
    accuracy,
    decoding_name,
    first_crossing,
    mean_accuracy,
    stage_time,
    time_to_accuracy,
    training_time,
)
from analysis.study import Study, load_study
from analysis.values import Source


def accuracies(root: Path, arm: SyntheticArm) -> list[float]:
    """Straight from the files, without the code under test."""
    paths = [
        root / "runs" / arm.run_id(seed) / "eval" / IN_DOMAIN / "results.json" for seed in range(arm.seeds)
    ]
    return [json.loads(path.read_text())["decodings"]["t1"]["metrics"]["accuracy"] for path in paths]


def training_seconds(root: Path, arm: SyntheticArm, key: str = "cpu_s/step") -> list[float]:
    logs = [root / "runs" / arm.run_id(seed) / "steps.jsonl" for seed in range(arm.seeds)]
    return [sum(json.loads(line).get(key, 0.0) for line in log.read_text().splitlines()) for log in logs]


def test_a_mean_is_that_of_the_files_in_percent(full: Study, full_root: Path) -> None:
    value = read(full, accuracy(IN_DOMAIN, "t1")).mean(full.baseline)
    expected = accuracies(full_root, GRPO)
    assert value.value == pytest.approx(100 * np.mean(expected))
    assert value.ci is not None
    assert value.ci[1] - value.ci[0] == pytest.approx(
        200 * scipy.stats.t.ppf(0.975, 4) * scipy.stats.sem(expected)
    )
    assert (value.n, value.source) == (5, Source.MEASURED)
    assert value.run_ids == tuple(sorted(GRPO.run_id(seed) for seed in range(5)))


def test_a_difference_pairs_equal_seeds(full: Study, full_root: Path) -> None:
    fastrl = full.main_arm("fastrl")
    assert fastrl is not None
    value = read(full, accuracy(IN_DOMAIN, "t1")).difference(fastrl, full.baseline)
    paired = np.subtract(accuracies(full_root, FASTRL), accuracies(full_root, GRPO))
    assert value.value == pytest.approx(100 * paired.mean())
    low, high = scipy.stats.ttest_1samp(100 * paired, 0).confidence_interval(0.95)
    assert value.ci == pytest.approx((low, high))
    assert value.source is Source.DERIVED
    assert len(value.run_ids) == 10


def test_speed_is_the_baselines_time_over_the_arms(full: Study, full_root: Path) -> None:
    fastrl = full.main_arm("fastrl")
    assert fastrl is not None
    value = read(full, training_time(full)).speed(fastrl, full.baseline)
    ratios = np.divide(training_seconds(full_root, GRPO), training_seconds(full_root, FASTRL))
    assert value.value == pytest.approx(scipy.stats.gmean(ratios))
    assert value.value > 2


def test_the_clock_decides_which_seconds_count(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO], clock="wall")
    study = load_study(tmp_path, "laptop")
    value = read(study, training_time(study)).mean(study.baseline)
    assert value.value == pytest.approx(np.mean(training_seconds(tmp_path, GRPO, "timing_s/step")))
    assert study.clock.unit == "s"


def test_only_common_seeds_are_compared(tmp_path: Path) -> None:
    few = replace(FASTRL, seeds=3)
    write_study(tmp_path, [GRPO, few])
    study = load_study(tmp_path, "laptop")
    arm = study.main_arm("fastrl")
    assert arm is not None
    value = read(study, training_time(study)).speed(arm, study.baseline)
    assert value.n == 3
    assert set(value.run_ids) == {a.run_id(seed) for a in (GRPO, few) for seed in range(3)}


def test_two_seeds_give_a_value_without_interval(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=2)])
    study = load_study(tmp_path, "laptop")
    value = read(study, accuracy(IN_DOMAIN, "t1")).mean(study.baseline)
    assert value.value is not None
    assert (value.n, value.ci) == (2, None)


def test_times_on_different_hardware_are_refused_and_accuracies_are_not(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO, FASTRL])
    other = {"hardware": {**HARDWARE, "cpu": "Another CPU"}, "commit": "0123456789abcdef", "dirty": False}
    for seed in range(FASTRL.seeds):
        (tmp_path / "runs" / FASTRL.run_id(seed) / "provenance.json").write_text(json.dumps(other))
    study = load_study(tmp_path, "laptop")
    arm = study.main_arm("fastrl")
    assert arm is not None
    times = read(study, training_time(study))
    refused = times.speed(arm, study.baseline)
    assert refused.value is None
    assert "Another CPU" in refused.note and "Example CPU" in refused.note
    assert times.mean(arm).value is not None
    assert read(study, accuracy(IN_DOMAIN, "t1")).difference(arm, study.baseline).value is not None


def test_a_mean_time_over_different_hardware_is_refused(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO])
    path = tmp_path / "runs" / GRPO.run_id(0) / "provenance.json"
    path.write_text(json.dumps({"hardware": {**HARDWARE, "gpus": ["GPU", "GPU"]}}))
    study = load_study(tmp_path, "laptop")
    value = read(study, training_time(study)).mean(study.baseline)
    assert value.value is None
    assert "2 × GPU" in value.note


def test_times_on_unknown_hardware_are_refused(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO])
    for seed in range(GRPO.seeds):
        (tmp_path / "runs" / GRPO.run_id(seed) / "provenance.json").unlink()
    study = load_study(tmp_path, "laptop")
    value = read(study, training_time(study)).mean(study.baseline)
    assert (value.value, value.note) == (None, "times on unknown hardware can't be compared")


def test_a_target_that_one_seed_misses_has_no_mean_time(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO])
    bad = replace(GRPO, accuracy=0.7)
    write_run(tmp_path, bad, 0)  # same run id: the label is the same
    study = load_study(tmp_path, "laptop")
    value = read(study, time_to_accuracy(study, 0.8)).mean(study.baseline)
    assert value.value is None
    assert value.note == "1 of 5 runs never reach 80 %"


def test_no_finished_run_is_no_value(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO])
    for seed in range(GRPO.seeds):
        (tmp_path / "runs" / GRPO.run_id(seed)).rename(tmp_path / f"away{seed}")
    study = load_study(tmp_path, "laptop")
    value = read(study, training_time(study)).mean(study.baseline)
    assert (value.value, value.note) == (None, "no finished run")


def test_a_ratio_with_a_time_of_zero_is_refused(full: Study) -> None:
    fastrl = full.main_arm("fastrl")
    assert fastrl is not None
    value = read(full, stage_time(full, ("select",), "selection")).speed(fastrl, full.baseline)
    assert (value.value, value.note) == (None, "no ratio with a time of zero")


def test_stage_times_add_up(full: Study) -> None:
    parts = [
        read(full, stage_time(full, (stage,), stage)).mean(full.baseline).value for stage in ("gen", "old")
    ]
    together = read(full, stage_time(full, ("gen", "old"), "both")).mean(full.baseline).value
    assert together == pytest.approx(sum(part or 0 for part in parts))


def test_a_mean_over_benchmarks_needs_all_of_them(full: Study) -> None:
    assert read(full, mean_accuracy((IN_DOMAIN, "unknown"), "t1")).by_run == {}


def test_a_crossing_lies_between_its_points() -> None:
    times, values = np.array([0.0, 10.0, 20.0]), np.array([0.5, 0.7, 0.9])
    assert first_crossing(times, values, 0.8) == pytest.approx(15)
    assert first_crossing(times, values, 0.7) == pytest.approx(10)
    assert first_crossing(times, values, 0.4) == 0
    assert first_crossing(times, values, 0.95) is None


def test_decodings_have_readable_names() -> None:
    assert [decoding_name(name) for name in ("t1", "t0_6", "greedy", "")] == [
        "T = 1",
        "T = 0.6",
        "greedy",
        "accuracy",
    ]
