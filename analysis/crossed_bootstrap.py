"""Paired comparison of two arms on the same questions and seeds, by a bootstrap over both.

The scores are a matrix of seeds times questions. Resampling questions alone asks what other questions would
have given these very policies; resampling seeds too asks what other training runs would have given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics import CONFIDENCE, LEAST_SEEDS, RESAMPLES

_AT_ONCE = 1000


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
    if differences.ndim != 2 or differences.size == 0:
        raise ValueError(f"needs seeds times questions, got the shape {differences.shape}")
    if not np.isfinite(differences).all():
        raise ValueError("needs finite differences: set the record aside before comparing")
    rng = np.random.default_rng(seed)
    seeds, questions = differences.shape
    by_question = differences.mean(axis=0)
    fixed, crossed = np.empty(RESAMPLES), np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        weights = rng.multinomial(questions, np.full(questions, 1 / questions), _AT_ONCE) / questions
        drawn = rng.multinomial(seeds, np.full(seeds, 1 / seeds), _AT_ONCE) / seeds
        fixed[rows] = weights @ by_question
        crossed[rows] = ((drawn @ differences) * weights).sum(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(fixed, [tail, 1 - tail])
    return PairedComparison(
        value=float(differences.mean()),
        seeds=seeds,
        questions=questions,
        over_questions=(float(low), float(high)),
        p=_two_sided(crossed) if seeds >= LEAST_SEEDS else None,
    )


def _two_sided(resampled: NDArray[np.float64]) -> float:
    """Twice the smaller share of resamples at or beyond zero; never zero itself."""
    beyond = min(int((resampled <= 0).sum()), int((resampled >= 0).sum()))
    return min(1.0, 2 * (beyond + 1) / (len(resampled) + 1))
