"""Paired comparison of two arms on the same questions and seeds, by a bootstrap over both.

The scores are a matrix of seeds times questions. Resampling questions alone asks what other questions would
have given these very policies; resampling seeds too asks what other training runs would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.statistics import CONFIDENCE, LEAST_SEEDS, RESAMPLES

_AT_ONCE = 1000
_ROUNDING = 1e-12
"""A resample this near to zero is zero: sums in another order differ by less."""


@dataclass(frozen=True)
class PairedComparison:
    """value: mean difference. over_questions: its percentile interval over questions, the seeds fixed.

    p: two-sided, over questions and seeds; None below `LEAST_SEEDS` seeds.
    """

    value: float
    seeds: int
    questions: int
    over_questions: tuple[float, float]
    p: float | None


def compare(differences: NDArray[np.float64], seed: int) -> PairedComparison:
    """Compare by (seeds, questions) differences of scores; the same `seed` gives the same numbers.

    Raises ValueError for an empty matrix and for a value that is not finite.
    """
    return compare_all([differences], seed)[0]


def compare_all(differences: Sequence[NDArray[np.float64]], seed: int) -> list[PairedComparison]:
    """`compare` for each of several matrices of one shape, with the same resamples for all."""
    for each in differences:
        if each.ndim != 2 or each.size == 0:
            raise ValueError(f"needs seeds times questions, got the shape {each.shape}")
        if not np.isfinite(each).all():
            raise ValueError("needs finite differences: set the record aside before comparing")
    stacked = np.stack(differences)
    pairs, seeds, questions = stacked.shape
    columns = np.ascontiguousarray(stacked.reshape(-1, questions).T)
    fixed, crossed = np.empty((RESAMPLES, pairs)), np.empty((RESAMPLES, pairs))
    by_question, by_seed = _draws(seed, seeds, questions)
    for start in range(0, RESAMPLES, _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        by_both = (by_question[rows].astype(np.float64) @ columns).reshape(-1, pairs, seeds) / questions
        fixed[rows] = by_both.mean(axis=2)
        crossed[rows] = (by_both * by_seed[rows, None]).sum(axis=2) / seeds
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(fixed, [tail, 1 - tail], axis=0)
    return [
        PairedComparison(
            value=float(each.mean()),
            seeds=seeds,
            questions=questions,
            over_questions=(float(low[pair]), float(high[pair])),
            p=_two_sided(crossed[:, pair]) if seeds >= LEAST_SEEDS else None,
        )
        for pair, each in enumerate(differences)
    ]


@lru_cache(maxsize=2)
def _draws(seed: int, seeds: int, questions: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """How often each resample drew each question, and each seed; the same for all pairs of arms."""
    rng = np.random.default_rng(seed)
    by_question = np.empty((RESAMPLES, questions), dtype=np.int16)
    by_seed = np.empty((RESAMPLES, seeds), dtype=np.int16)
    for start in range(0, RESAMPLES, _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        by_question[rows] = rng.multinomial(questions, np.full(questions, 1 / questions), _AT_ONCE)
        by_seed[rows] = rng.multinomial(seeds, np.full(seeds, 1 / seeds), _AT_ONCE)
    return by_question, by_seed


def _two_sided(resampled: NDArray[np.float64]) -> float:
    """Twice the smaller share of resamples at or beyond zero; never zero itself."""
    beyond = min(int((resampled <= _ROUNDING).sum()), int((resampled >= -_ROUNDING).sum()))
    return min(1.0, 2 * (beyond + 1) / (len(resampled) + 1))
