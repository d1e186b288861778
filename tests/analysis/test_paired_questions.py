"""Comparison on the same questions and seeds, and aggregates over benchmarks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, QUESTIONS, write_study

from analysis.aggregates import (
    interquartile_estimate,
    interquartile_mean,
    performance_profile,
    score_matrices,
)
from analysis.crossed_bootstrap import compare, compare_all
from analysis.questions import paired_comparisons
from analysis.study import Study, load_study
from analysis.tables import TABLES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_study(tmp_path, [replace(GRPO, seeds=3), replace(FASTRL, seeds=3)])
    return tmp_path


def samples(root: Path, seed: int) -> Path:
    return root / "runs" / FASTRL.run_id(seed) / "eval" / IN_DOMAIN / "samples.parquet"


def compared(root: Path) -> object:
    study = load_study(root, "laptop")
    arm = study.main_arm("fastrl")
    assert arm is not None
    return paired_comparisons(study, [(arm, study.baseline)], IN_DOMAIN)[arm.id]


def test_with_one_seed_the_questions_interval_is_the_paired_bootstrap_of_scipy() -> None:
    differences = np.random.default_rng(0).normal(0.1, 0.4, (1, 200))
    result = compare(differences, seed=0)
    expected = scipy.stats.bootstrap(
        (differences[0],), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    width = expected.high - expected.low
    assert result.over_questions == pytest.approx((expected.low, expected.high), abs=0.03 * width)
    assert result.p is None, "one seed says nothing of other training runs"


def test_without_spread_between_seeds_p_is_that_of_the_paired_t_test() -> None:
    one = np.random.default_rng(3).normal(0.05, 0.4, 300)
    result = compare(np.tile(one, (4, 1)), seed=0)
    assert result.p == pytest.approx(scipy.stats.ttest_1samp(one, 0).pvalue, abs=0.01)


def test_a_spread_between_seeds_makes_p_larger_than_the_questions_alone_would() -> None:
    shifts = np.array([-0.1, 0.0, 0.1, 0.2])[:, None]
    noise = np.random.default_rng(3).normal(0, 0.1, (4, 300))
    result = compare(shifts + noise, seed=0)
    assert result.over_questions[0] > 0
    assert result.p is not None and result.p > 0.1


def test_no_difference_anywhere_has_p_one() -> None:
    assert compare(np.zeros((3, 20)), seed=0).p == 1.0


def test_pairs_compared_together_are_those_compared_alone() -> None:
    pairs = list(np.random.default_rng(2).integers(-4, 5, (3, 4, 60)) / 4)
    for together, alone in zip(compare_all(pairs, 0), (compare(each, 0) for each in pairs), strict=True):
        assert together.over_questions == pytest.approx(alone.over_questions)
        assert (together.value, together.p) == (alone.value, alone.p), "ties at zero count on both sides"


def test_the_same_seed_gives_the_same_numbers() -> None:
    differences = np.random.default_rng(1).normal(0, 1, (3, 50))
    assert compare(differences, 7) == compare(differences, 7)


@pytest.mark.parametrize("bad", [np.empty((0, 3)), np.zeros(4), np.array([[np.nan]])])
def test_what_can_not_be_compared_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="needs"):
        compare(bad, seed=0)


def test_differences_are_those_of_the_samples(root: Path) -> None:
    result = compared(root)
    assert not isinstance(result, str)
    means = []
    for seed in range(3):
        paths = [
            root / "runs" / arm.run_id(seed) / "eval" / IN_DOMAIN / "samples.parquet"
            for arm in (FASTRL, GRPO)
        ]
        ours, theirs = (pd.read_parquet(path).query("decoding == 't1'")["correct"].mean() for path in paths)
        means.append(ours - theirs)
    assert result.value == pytest.approx(np.mean(means))
    assert (result.seeds, result.questions) == (3, QUESTIONS)


def test_other_questions_are_refused(root: Path) -> None:
    frame = pd.read_parquet(samples(root, 1))
    frame["question_id"] = frame["question_id"].replace("question/007", "question/another")
    frame.to_parquet(samples(root, 1), index=False)
    assert compared(root) == "seed 1 was asked other questions"


def test_samples_that_are_missing_are_named_under_the_table_whose_rest_stands(root: Path) -> None:
    samples(root, 1).unlink()
    path = f"runs/{FASTRL.run_id(1)}/eval/{IN_DOMAIN}/samples.parquet"
    assert compared(root) == f"{path}: the samples of a finished evaluation are missing"
    table = TABLES["comparison"].build(load_study(root, "laptop"))
    assert any("are missing" in gap and FASTRL.run_id(1) in gap for gap in table.gaps)
    assert table.rows[1].values[0].value is not None


def test_interquartile_mean_is_scipys_trimmed_mean() -> None:
    scores = np.random.default_rng(0).random((7, 5))
    assert interquartile_mean(scores) == pytest.approx(scipy.stats.trim_mean(scores, 0.25, axis=None))


def test_aggregates_are_rliables() -> None:
    # rliable 1.2, in an environment of its own with pandas < 3: metrics.aggregate_iqm, get_interval_estimates
    # (5,000 resamples; with one benchmark its strata are our whole runs) and create_performance_profile.
    few = np.random.default_rng(0).random((10, 1)) * 0.3 + 0.5
    many = np.random.default_rng(1).random((6, 3))
    assert interquartile_mean(few) == pytest.approx(0.6799887984251098)
    assert interquartile_mean(many) == pytest.approx(0.4683771364046496)
    assert interquartile_estimate(few).ci == pytest.approx((0.58858906, 0.73941789), abs=0.01)
    shares = performance_profile(many, np.linspace(0, 1, 6))[0]
    assert shares == pytest.approx([1, 15 / 18, 12 / 18, 5 / 18, 3 / 18, 0])


def test_a_profile_falls_from_one_to_zero_within_its_band() -> None:
    scores = np.random.default_rng(0).random((6, 3))
    shares, low, high = performance_profile(scores, np.linspace(-0.01, 1.01, 30))
    assert (shares[0], shares[-1]) == (1, 0)
    assert (np.diff(shares) <= 0).all() and (low <= shares).all() and (shares <= high).all()
    assert shares[10] == pytest.approx((scores > np.linspace(-0.01, 1.01, 30)[10]).mean())


def test_two_runs_have_an_interquartile_mean_without_interval() -> None:
    assert interquartile_estimate(np.ones((2, 3))).ci is None
    assert np.isnan(performance_profile(np.ones((2, 3)), np.array([0.5]))[1]).all()


def test_scores_are_changes_from_the_baselines_mean(full: Study) -> None:
    scores, run_ids = score_matrices(full, [full.baseline])[full.baseline.id]
    assert scores.shape == (5, 2) and len(run_ids) == 5
    assert scores.mean(axis=0) == pytest.approx([0, 0], abs=1e-12)
