"""The tested claims: each verdict follows from the data, and from nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_study import CPPO, FASTRL, FULL_ARMS, GRPO, TAU_ARMS, SyntheticArm, write_study

from analysis.claims import CLAIMS
from analysis.claims.accuracy import higher_at_equal_steps, higher_at_equal_time
from analysis.claims.claim import Claim, ClaimTest, Verdict, above, all_of, below, paper_says
from analysis.claims.lag import robust_to_lag
from analysis.claims.parity import nothing_pruned_is_baseline
from analysis.claims.pruning import better_than_as_few
from analysis.claims.speed import both_parts_save_time, faster_to_target, faster_training
from analysis.claims.threshold import peak_at_paper_tau
from analysis.statistics import Estimate
from analysis.study import Study, load_study
from analysis.values import Source, derived, missing


def claim_on(tmp_path: Path, test: ClaimTest, *arms: SyntheticArm) -> Claim:
    write_study(tmp_path, arms)
    return test(load_study(tmp_path, "laptop"))


def test_verdicts_follow_the_interval() -> None:
    for ci, expected in [
        ((0.1, 2.0), Verdict.HOLDS),
        ((-2.0, -0.1), Verdict.FAILS),
        ((-1.0, 1.0), Verdict.OPEN),
        (None, Verdict.FEW_SEEDS),
    ]:
        assert above(derived(Estimate(1.0, 5, ci), ("run",)), 0) is expected
    assert above(derived(Estimate(-1.0, 2, None), ("run",)), 0) is Verdict.FEW_SEEDS
    assert above(missing(Source.DERIVED), 0) is Verdict.NOT_TESTED
    assert below(derived(Estimate(-1.0, 5, (-2.0, -0.1)), ("run",)), 0) is Verdict.HOLDS
    assert below(derived(Estimate(1.0, 5, (0.1, 2.0)), ("run",)), 0) is Verdict.FAILS


def test_a_claim_of_parts_holds_with_all_and_fails_with_one() -> None:
    assert all_of(Verdict.HOLDS, Verdict.HOLDS) is Verdict.HOLDS
    assert all_of(Verdict.HOLDS, Verdict.OPEN) is Verdict.OPEN
    assert all_of(Verdict.FEW_SEEDS, Verdict.OPEN) is Verdict.FEW_SEEDS
    assert all_of(Verdict.FEW_SEEDS, Verdict.FAILS) is Verdict.FAILS
    assert all_of(Verdict.OPEN, Verdict.FAILS, Verdict.HOLDS) is Verdict.FAILS


@pytest.mark.parametrize("test", CLAIMS)
def test_every_claim_states_its_numbers_and_n(test: ClaimTest, full: Study, lag: Study) -> None:
    for study in (full, lag):
        claim = test(study)
        assert claim.statement.endswith(".") and claim.finding.endswith(".")
        if claim.verdict in (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN):
            assert "n = " in claim.finding
            assert all(value.run_ids for _, value in claim.values if value.value is not None)


@pytest.mark.parametrize("test", CLAIMS)
def test_a_study_of_the_baseline_alone_tests_nothing(test: ClaimTest, tmp_path: Path) -> None:
    assert claim_on(tmp_path, test, GRPO).verdict is Verdict.NOT_TESTED


def test_training_faster_or_slower_is_read_from_the_records(tmp_path: Path) -> None:
    fast = claim_on(tmp_path / "fast", faster_training, GRPO, FASTRL)
    slow = claim_on(tmp_path / "slow", faster_training, GRPO, replace(FASTRL, seconds=60.0))
    assert (fast.verdict, slow.verdict) == (Verdict.HOLDS, Verdict.FAILS)
    assert "CPU-s" in fast.finding
    assert "2.14×" in fast.reported and "2.14×" not in fast.finding


def test_two_seeds_are_too_few_to_judge(tmp_path: Path) -> None:
    claim = claim_on(tmp_path, faster_training, replace(GRPO, seeds=2), replace(FASTRL, seeds=2))
    assert claim.verdict is Verdict.FEW_SEEDS
    assert "n = 2, no interval" in claim.finding


@pytest.mark.parametrize(
    ("accuracy", "verdict", "word"),
    [(0.98, Verdict.HOLDS, "higher"), (0.8, Verdict.FAILS, "lower"), (0.912, Verdict.OPEN, "not disting")],
)
def test_accuracy_at_equal_steps(tmp_path: Path, accuracy: float, verdict: Verdict, word: str) -> None:
    claim = claim_on(tmp_path, higher_at_equal_steps, GRPO, replace(FASTRL, accuracy=accuracy))
    assert claim.verdict is verdict
    assert word in claim.finding.split(";")[1]
    assert [name for name, _ in claim.values][:2] == ["T = 1", "T = 1, bootstrap"]


def test_at_equal_time_the_faster_method_may_be_ahead_although_it_ends_below(full: Study) -> None:
    assert higher_at_equal_steps(full).verdict is Verdict.FAILS
    assert higher_at_equal_time(full).verdict is Verdict.HOLDS


def test_a_target_that_is_not_reached_is_said(tmp_path: Path) -> None:
    claim = claim_on(tmp_path, faster_to_target, GRPO, replace(FASTRL, accuracy=0.7))
    assert claim.verdict is Verdict.NOT_TESTED
    assert "never reach 80 %" in claim.finding


def test_the_peak_is_where_the_means_put_it(tmp_path: Path) -> None:
    best = [replace(FASTRL, accuracy=0.97), *(replace(arm, accuracy=0.85) for arm in TAU_ARMS)]
    claim = claim_on(tmp_path / "best", peak_at_paper_tau, GRPO, *best)
    assert claim.verdict is Verdict.HOLDS
    assert "highest mean at τ = 0.8" in claim.finding
    worse = [replace(FASTRL, accuracy=0.80), *TAU_ARMS]
    assert claim_on(tmp_path / "worse", peak_at_paper_tau, GRPO, *worse).verdict is Verdict.FAILS


def test_an_arm_without_a_threshold_is_no_part_of_the_sweep(tmp_path: Path) -> None:
    overridden = replace(GRPO, groups=("main", "tau"))
    claim = claim_on(tmp_path, peak_at_paper_tau, overridden, FASTRL, *TAU_ARMS)
    assert "GRPO" not in claim.finding and claim.values


def test_saving_time_needs_both_parts(full: Study, tmp_path: Path) -> None:
    assert both_parts_save_time(full).verdict is Verdict.HOLDS
    parts = [arm for arm in FULL_ARMS if "ablation" in arm.groups]
    quick = [replace(arm, seconds=5.0) if arm.method == "fastrl_without_ars" else arm for arm in parts]
    assert claim_on(tmp_path, both_parts_save_time, *quick).verdict is Verdict.FAILS


def test_controls_that_keep_as_few_are_compared_at_once(full: Study) -> None:
    claim = better_than_as_few(full)
    assert [name for name, _ in claim.values] == ["Random 75 %, 2 kept", "CPPO, 2 kept"]
    assert "cover at once" in claim.finding


def test_the_lag_finding_names_the_control_with_as_few_updates(lag: Study) -> None:
    claim = robust_to_lag(lag)
    assert claim.verdict is Verdict.FEW_SEEDS
    assert "16 updates, learning rate 0.0004" in claim.finding
    assert "GRPO with 5 updates a step gets 8" in claim.finding


def test_parity_is_exact_or_names_the_first_difference(tmp_path: Path) -> None:
    same = replace(GRPO, method="fastrl", label="FastRL τ=0, fixed", groups=("parity",), tau=0.0)
    write_study(tmp_path, [GRPO, same])
    for seed in range(GRPO.seeds):
        for name in ("steps.jsonl",):
            theirs = tmp_path / "runs" / GRPO.run_id(seed) / name
            (tmp_path / "runs" / same.run_id(seed) / name).write_bytes(theirs.read_bytes())
    claim = nothing_pruned_is_baseline(load_study(tmp_path, "laptop"))
    assert claim.verdict is Verdict.HOLDS and "n = 5 seeds" in claim.finding
    path = tmp_path / "runs" / same.run_id(3) / "steps.jsonl"
    lines = path.read_text().splitlines()
    record = json.loads(lines[17])
    record["actor/entropy"] += 1e-12
    lines[17] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")
    claim = nothing_pruned_is_baseline(load_study(tmp_path, "laptop"))
    assert claim.verdict is Verdict.FAILS
    assert f"{same.run_id(3)} differs from {GRPO.run_id(3)} first at step 17: actor/entropy" in claim.finding


def test_paper_figures_come_with_their_place_and_sign() -> None:
    assert paper_says("table1", "fastrl", "out_of_domain_gain").startswith(
        "+1.31 points (Table 1 §4.2: Geometry3K"
    )
    assert paper_says("table1", CPPO.method, "out_of_domain_gain").startswith("−0.15 points")
    assert paper_says("table1", "fastrl", "unknown") == ""
