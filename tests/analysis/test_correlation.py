"""Correlations over pairs: the coefficients of their definitions, and intervals that resample questions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from analysis.offline.correlation import Pairs, correlate, subsets


def pairs_of(jaccard: np.ndarray, cosine: np.ndarray, question: np.ndarray) -> Pairs:
    count = len(jaccard)
    return Pairs(question, jaccard, cosine, np.zeros(count, dtype=bool), np.full(count, np.nan))


@given(st.integers(0, 1000), st.integers(3, 40), st.integers(2, 12))
def test_coefficients_are_those_of_scipy_with_ties(seed: int, count: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, levels, (2, count)) / levels
    found = correlate(pairs_of(x, y, np.arange(count)), resamples=1, seed=0)
    if x.min() == x.max() or y.min() == y.max():
        assert found.pearson is None
        assert found.spearman is None
    else:
        assert found.pearson is not None
        assert found.spearman is not None
        assert found.pearson.value == pytest.approx(pearsonr(x, y).statistic)
        assert found.spearman.value == pytest.approx(spearmanr(x, y).statistic)


def test_the_interval_counts_questions_not_pairs() -> None:
    """Ten copies of each pair in its question say nothing new; as questions of their own they would."""
    rng = np.random.default_rng(0)
    x = rng.random(20)
    y = x + rng.normal(size=20)
    x10, y10 = np.repeat(x, 10), np.repeat(y, 10)
    widths = []
    for jaccard, cosine, question in (
        (x, y, np.arange(20)),
        (x10, y10, np.repeat(np.arange(20), 10)),
        (x10, y10, np.arange(200)),
    ):
        estimate = correlate(pairs_of(jaccard, cosine, question), 400, 0).pearson
        assert estimate is not None
        assert estimate.ci is not None
        widths.append(estimate.ci[1] - estimate.ci[0])
    assert widths[0] == pytest.approx(widths[1])
    assert widths[2] < 0.5 * widths[0]


def test_two_questions_give_no_interval() -> None:
    rng = np.random.default_rng(0)
    found = correlate(pairs_of(rng.random(10), rng.random(10), np.arange(10) % 2), 100, 0)
    assert found.questions == 2
    assert found.pearson is not None
    assert found.pearson.ci is None


def test_subsets_part_duplicates_and_correctness() -> None:
    pairs = Pairs(
        question=np.arange(4),
        jaccard=np.ones(4),
        cosine=np.ones(4),
        duplicate=np.array([True, False, False, False]),
        correct=np.array([1, 1, 0, np.nan]),
    )
    assert {name: len(part) for name, part in subsets(pairs).items()} == {
        "all": 4,
        "all, without duplicates": 3,
        "both correct": 2,
        "both correct, without duplicates": 1,
        "both wrong": 1,
        "both wrong, without duplicates": 1,
    }
