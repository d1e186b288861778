"""pass@k, avg@k, maj@k against slow oracles that enumerate subsets and ballots."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.pass_at_k import avg_at_k, maj_at_k, pass_at_k, question_intervals

verdicts_and_k = st.lists(st.booleans(), min_size=1, max_size=9).flatmap(
    lambda verdicts: st.tuples(st.just(verdicts), st.integers(1, len(verdicts)))
)
n_and_counts = st.integers(1, 400).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=8))
)


@given(verdicts_and_k)
def test_pass_at_k_is_the_share_of_subsets_with_a_right_answer(case: tuple[list[bool], int]) -> None:
    correct, k = case
    subsets = list(combinations(correct, k))
    exact = Fraction(sum(any(subset) for subset in subsets), len(subsets))
    (value,) = pass_at_k(np.array([sum(correct)]), len(correct), k)
    assert value == pytest.approx(float(exact), abs=1e-12)


@given(n_and_counts)
def test_pass_at_k_grows_with_k_and_never_leaves_the_unit_interval(case: tuple[int, list[int]]) -> None:
    n, counts = case
    curve = np.stack([pass_at_k(np.array(counts), n, k) for k in range(1, n + 1)])
    assert np.all(np.isfinite(curve)) and curve.min() >= 0.0 and curve.max() <= 1.0
    assert np.all(np.diff(curve, axis=0) >= -1e-12)
    np.testing.assert_allclose(curve[0], np.array(counts) / n)
    np.testing.assert_array_equal(curve[-1], np.array(counts) > 0)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6))
def test_avg_at_n_equals_pass_at_1(rows: list[list[bool]]) -> None:
    correct = np.array(rows)
    np.testing.assert_allclose(avg_at_k(correct, 4), pass_at_k(correct.sum(axis=1), 4, 1))


ballots = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(-1, 3), min_size=n, max_size=n), min_size=1, max_size=5),
        st.integers(1, n),
        st.integers(0, 3),
    )
)


@given(ballots)
def test_maj_at_k_counts_ballots_and_shares_ties(case: tuple[list[list[int]], int, int]) -> None:
    rows, k, gold = case
    answers = np.array(rows)
    expected = []
    for row in rows:
        tally = Counter(answer for answer in row[:k] if answer >= 0)
        leaders = [answer for answer, votes in tally.items() if votes == max(tally.values())]
        expected.append(float(gold in leaders) / len(leaders) if leaders else 0.0)
    np.testing.assert_allclose(maj_at_k(answers, answers == gold, k), expected)


def test_right_answers_written_differently_vote_together() -> None:
    answers = np.array([[0, 1, 2, 2, 3]])
    correct = np.array([[True, True, False, False, True]])
    assert maj_at_k(answers, correct, 5) == [1.0]


@pytest.mark.parametrize("k", [0, 5])
def test_k_outside_the_samples_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.4"):
        pass_at_k(np.array([2]), 4, k)
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.4"):
        avg_at_k(np.ones((1, 4), bool), k)
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.4"):
        maj_at_k(np.zeros((1, 4), int), np.ones((1, 4), bool), k)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"in 0\.\.4"):
        pass_at_k(np.array([5]), 4, 1)
    with pytest.raises(ValueError, match="no answer"):
        maj_at_k(np.array([[-1]]), np.array([[True]]), 1)


def test_interval_covers_the_mean_of_the_population_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        ((low, high),) = question_intervals(
            (generator.random((80, 1)) < 0.7).astype(float), 0.95, 200, generator
        )
        covered += low <= 0.7 <= high
    assert 175 <= covered <= 200


def test_interval_is_seeded_and_shrinks_with_questions() -> None:
    few, many = np.tile([[0.0], [1.0]], (10, 1)), np.tile([[0.0], [1.0]], (1000, 1))
    ((low, high),) = question_intervals(few, 0.95, 500, np.random.default_rng(1))
    again = question_intervals(few, 0.95, 500, np.random.default_rng(1))
    assert (low, high) == tuple(again[0])
    ((low_many, high_many),) = question_intervals(many, 0.95, 500, np.random.default_rng(1))
    assert high_many - low_many < (high - low) / 3
    with pytest.raises(ValueError, match="got none"):
        question_intervals(np.zeros((0, 1)), 0.95, 10, np.random.default_rng(1))


def test_intervals_of_several_metrics_rest_on_the_same_resampled_questions() -> None:
    values = np.random.default_rng(3).random((50, 1))
    bounds = question_intervals(np.hstack([values, values, 2 * values]), 0.9, 200, np.random.default_rng(4))
    np.testing.assert_allclose(bounds[1], bounds[0])
    np.testing.assert_allclose(bounds[2], 2 * bounds[0])
