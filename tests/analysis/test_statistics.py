"""Intervals against scipy's, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics import (
    LEAST_SEEDS,
    bootstrap_mean,
    holm,
    mean,
    mean_of_columns,
    paired_difference,
    paired_ratio,
)

values = st.floats(-100, 100)
samples = st.lists(values, min_size=LEAST_SEEDS, max_size=12)
pairs = st.lists(st.tuples(values, values), min_size=LEAST_SEEDS, max_size=12)
positive_pairs = st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=3, max_size=12)


@given(samples)
def test_mean_and_its_interval_are_scipys(sample: list[float]) -> None:
    estimate = mean(sample)
    assert estimate.value == pytest.approx(np.mean(sample))
    assert estimate.n == len(sample)
    sem = scipy.stats.sem(sample)
    if sem > 1e-9:
        expected = scipy.stats.t.interval(0.95, len(sample) - 1, loc=np.mean(sample), scale=sem)
        assert estimate.ci == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(pairs)
def test_paired_difference_agrees_with_the_paired_t_test(sample: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*sample, strict=True)
    estimate = paired_difference(ours, theirs)
    if np.std(np.subtract(ours, theirs)) > 1e-6:
        low, high = scipy.stats.ttest_rel(ours, theirs).confidence_interval(0.95)
        assert estimate.ci == pytest.approx((low, high), rel=1e-6, abs=1e-8)


@given(positive_pairs)
def test_a_ratio_turned_round_is_its_inverse(sample: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*sample, strict=True)
    ratio, turned = paired_ratio(ours, theirs), paired_ratio(theirs, ours)
    assert ratio.value == pytest.approx(1 / turned.value)
    assert ratio.ci is not None and turned.ci is not None
    assert ratio.ci == pytest.approx((1 / turned.ci[1], 1 / turned.ci[0]))
    assert ratio.value == pytest.approx(scipy.stats.gmean(np.divide(ours, theirs)))


@given(samples)
def test_rows_at_once_equal_rows_one_by_one(sample: list[float]) -> None:
    centre, low, high = mean_of_columns(np.array([sample, sample[::-1]]))
    one = mean(sample)
    assert one.ci is not None
    assert (centre[0], low[0], high[0]) == pytest.approx((one.value, *one.ci), abs=1e-9)
    assert centre[1] == pytest.approx(centre[0], abs=1e-9)


def test_bootstrap_agrees_with_scipy_and_repeats_itself() -> None:
    sample = np.random.default_rng(3).normal(1.0, 2.0, 10)
    estimate = bootstrap_mean(sample, seed=0)
    assert estimate == bootstrap_mean(sample, seed=0)
    expected = scipy.stats.bootstrap(
        (sample,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    width = expected.high - expected.low
    assert estimate.ci == pytest.approx((expected.low, expected.high), abs=0.03 * width)


def test_a_skewed_samples_bootstrap_interval_is_skewed_as_scipys() -> None:
    sample = np.random.default_rng(5).lognormal(0, 1, 12)
    estimate = bootstrap_mean(sample, seed=0)
    expected = scipy.stats.bootstrap(
        (sample,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert estimate.ci is not None
    assert estimate.ci[1] - estimate.value > 1.3 * (estimate.value - estimate.ci[0])
    assert estimate.ci == pytest.approx((expected.low, expected.high), rel=0.04)


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert bootstrap_mean([0.1, 0.1, 0.1], seed=0).ci == pytest.approx((0.1, 0.1))


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_p_value_and_bonferronis(p: list[float]) -> None:
    adjusted = holm(p)
    for one, after in zip(p, adjusted, strict=True):
        assert one <= after <= min(1.0, one * len(p)) + 1e-12
    assert all(a <= b for a, b in zip(np.array(adjusted)[np.argsort(p)], sorted(adjusted), strict=True))


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    intervals = [mean(rng.normal(5, 3, 5)).ci for _ in range(4000)]
    covered = np.mean([low <= 5 <= high for low, high in filter(None, intervals)])
    assert covered == pytest.approx(0.95, abs=0.012)


@given(samples, st.integers(2, 9))
def test_intervals_that_cover_at_once_are_wider(sample: list[float], comparisons: int) -> None:
    one, several = mean(sample), mean(sample, comparisons)
    assert one.ci is not None and several.ci is not None
    assert several.value == one.value
    assert several.ci[1] - several.ci[0] >= one.ci[1] - one.ci[0]


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_three_values_have_no_interval(n: int) -> None:
    sample = [1.0, 2.0][:n]
    assert mean(sample).ci is None
    assert paired_difference(sample, sample).ci is None
    assert paired_ratio(sample, sample).ci is None
    assert bootstrap_mean(sample, seed=0).ci is None
    assert np.isnan(mean_of_columns(np.array([sample]))[1]).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        mean([0.5, bad, 0.7])
    with pytest.raises(ValueError, match="finite"):
        mean_of_columns(np.array([[0.5, bad]]))


def test_nothing_to_average_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        mean([])


def test_pairs_need_partners_and_ratios_need_positive_values() -> None:
    with pytest.raises(ValueError, match="one partner each, got 2 and 1"):
        paired_difference([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="positive"):
        paired_ratio([1.0, 0.0], [1.0, 1.0])
