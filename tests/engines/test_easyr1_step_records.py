"""EasyR1's own logs of two runs, recorded with the real trainer on CPUs, as step records.

One is FastRL's; the other DAPO's, with refills, and with validations and checkpoints every second step.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.step_frames import STAGES, step_keys
from fastrl.engines.easyr1.step_records import flat, is_step, step_record, validation_record

LOG = Path(__file__).parent / "easyr1_experiment_log.jsonl"
LINES = [flat(json.loads(line)) for line in LOG.read_text(encoding="utf-8").splitlines()]
STEPS = [line for line in LINES if is_step(line)]
DAPO_LOG = LOG.with_name("easyr1_dapo_experiment_log.jsonl")
DAPO = [flat(json.loads(line)) for line in DAPO_LOG.read_text(encoding="utf-8").splitlines()]
REFILLED = [line for line in DAPO if is_step(line)]


def test_the_log_is_six_steps_and_the_validation_after_the_last() -> None:
    assert [line["step"] for line in LINES] == [1, 2, 3, 4, 5, 6, 6]
    assert [is_step(line) for line in LINES] == [True] * 6 + [False]


@pytest.mark.parametrize("metrics", STEPS)
def test_the_stages_add_up_and_stay_below_easyr1s_own_step(metrics: dict[str, float]) -> None:
    record = step_record(metrics, int(metrics["step"]), 0.0)
    assert record["timing_s/step"] == pytest.approx(sum(record[f"timing_s/{stage}"] for stage in STAGES))
    assert 0.9 * metrics["timing_s/step"] < record["timing_s/step"] <= metrics["timing_s/step"]


@pytest.mark.parametrize("metrics", REFILLED)
def test_work_validation_and_checkpoint_together_are_easyr1s_step(metrics: dict[str, float]) -> None:
    record = step_record(metrics, int(metrics["step"]), 0.0)
    assert record["timing_s/step"] == pytest.approx(sum(record[f"timing_s/{stage}"] for stage in STAGES))
    beside = record["timing_s/validation"] + record["timing_s/save_checkpoint"]
    assert record["timing_s/step"] + beside == pytest.approx(metrics["timing_s/step"], rel=0.02)


def test_validations_and_checkpoints_are_beside_the_steps_that_have_them() -> None:
    records = [step_record(metrics, int(metrics["step"]), 0.0) for metrics in REFILLED]
    assert [record["step"] for record in records if record["timing_s/validation"]] == [2, 4, 6]
    assert [record["step"] for record in records if "val/accuracy" in record] == [2, 4, 6]
    # A checkpoint is written when the record of its step is on disk: at the next step's start.
    assert [record["step"] for record in records if record["timing_s/save_checkpoint"]] == [3, 5]


def test_refills_are_counted_with_all_that_they_sampled() -> None:
    records = [step_record(metrics, int(metrics["step"]), 0.0) for metrics in REFILLED]
    assert all(record["rollout/draws"] >= 2 for record in records)
    for record in records:
        assert record["rollout/questions"] == 8 * record["rollout/draws"]
        assert record["rollout/accepted"] == 8
        assert record["rollout/trajectories"] == 4 * record["rollout/questions"]
        assert record["timing_s/ref"] == 0.0 and record["actor/kl"] is None


@pytest.mark.parametrize("metrics", STEPS)
def test_a_record_has_every_key_that_a_report_needs(metrics: dict[str, float]) -> None:
    record = step_record(metrics, int(metrics["step"]), 0.0)
    assert all(isinstance(record[key], int | float) for key in step_keys("timing_s"))


def test_figures_before_and_after_pruning_are_apart() -> None:
    record = step_record(STEPS[0], 1, 0.0)
    assert record["rollout/trajectories"] == 32
    assert record["select/kept_aligned"] == 28
    assert record["tokens/generated"] == 291 > record["tokens/trained"] == 251
    # Old and reference log-probs of what is kept: twice 291 where pruning comes after them.
    assert record["tokens/total"] == 291 + 251 + STEPS[0]["fastrl/scored_tokens"]


def test_rewards_that_online_filtering_awaited_are_not_part_of_generation() -> None:
    plain = step_record(STEPS[0], 1, 0.0)
    filtered = step_record({**STEPS[0], "fastrl/refilled": 1.0}, 1, 0.0)
    waited = plain["timing_s/gen"] - filtered["timing_s/gen"]
    assert waited == pytest.approx(plain["timing_s/reward"])


def test_a_validation_alone_is_no_step() -> None:
    record = validation_record(LINES[-1], 6, 0.0)
    assert set(record) == {"step", "time", "val/accuracy"}


def test_a_metric_that_is_missing_is_named() -> None:
    with pytest.raises(KeyError, match="timing_s/old"):
        step_record({key: value for key, value in STEPS[0].items() if key != "timing_s/old"}, 1, 0.0)
