"""Several benchmarks in one number or one curve: interquartile mean and performance profile.

After Agarwal et al. 2021 (rliable), on scores of runs times benchmarks. A run gives its scores on all
benchmarks together, so resampling draws whole runs, where rliable draws each benchmark's apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.comparison import Readings, read
from analysis.measures import accuracy
from analysis.statistics import CONFIDENCE, LEAST_SEEDS, Estimate
from analysis.study import Arm, Study

Array = NDArray[np.float64]

_RESAMPLES = 2000
_SEED = 0
_TRIMMED = 0.25


def score_matrices(study: Study, arms: Sequence[Arm]) -> dict[str, tuple[Array, tuple[str, ...]]]:
    """By arm id: (runs, benchmarks) accuracies less the baseline's mean, as fractions, and run ids.

    Benchmarks differ far more than methods do, so their accuracies are comparable only against a baseline.
    Runs that lack a benchmark are left out; there are none when the baseline lacks one.
    """
    benchmarks = (study.plan.report.in_domain, *study.plan.report.out_of_domain)
    readings = [read(study, accuracy(name, study.main_decoding(name))) for name in benchmarks]
    return {arm.id: _score_matrix(study, arm, readings) for arm in arms}


def _score_matrix(study: Study, arm: Arm, readings: Sequence[Readings]) -> tuple[Array, tuple[str, ...]]:
    by_benchmark = [each.by_seed(arm) for each in readings]
    base = [list(each.by_seed(study.baseline_of(arm)).values()) for each in readings]
    if not all(base):
        return np.empty((0, len(readings))), ()
    seeds = [seed for seed in arm.runs if all(seed in values for values in by_benchmark)]
    scores = np.array([[values[seed] for values in by_benchmark] for seed in seeds], dtype=np.float64)
    changes = scores.reshape(len(seeds), len(readings)) - [np.mean(values) for values in base]
    return changes, tuple(arm.runs[seed] for seed in seeds)


def interquartile_mean(scores: Array) -> float:
    """The mean of the middle half of all scores, a quarter cut off at each end (rounded down)."""
    return float(_middle_means(scores.reshape(1, -1))[0])


def interquartile_estimate(scores: Array) -> Estimate:
    """`interquartile_mean` of (runs, benchmarks) scores with its interval over runs."""
    value = interquartile_mean(scores)
    if len(scores) < LEAST_SEEDS:
        return Estimate(value, len(scores), None)
    low, high = _limits(_middle_means(_resampled(scores)))
    return Estimate(value, len(scores), (float(low), float(high)))


def performance_profile(scores: Array, thresholds: Array) -> tuple[Array, Array, Array]:
    """`shares_above` with its interval over runs (NaN for few runs)."""
    shares = shares_above(scores, thresholds)
    if len(scores) < LEAST_SEEDS:
        return shares, np.full_like(shares, np.nan), np.full_like(shares, np.nan)
    low, high = _limits(np.stack([shares_above(drawn, thresholds) for drawn in _resampled(scores)]))
    return shares, low, high


def shares_above(scores: Array, thresholds: Array) -> Array:
    """The share of all scores above each threshold."""
    ordered = np.sort(scores, axis=None)
    return 1 - np.searchsorted(ordered, thresholds, side="right") / len(ordered)


def _middle_means(scores: Array) -> Array:
    """The mean of the middle half of each row."""
    ordered = np.sort(scores, axis=1)
    cut = int(_TRIMMED * ordered.shape[1])
    return np.asarray(ordered[:, cut : ordered.shape[1] - cut].mean(axis=1), dtype=np.float64)


def _resampled(scores: Array) -> Array:
    """(resamples, scores) of runs drawn with replacement, each with its scores on all benchmarks."""
    runs = len(scores)
    drawn = np.random.default_rng(_SEED).integers(0, runs, (_RESAMPLES, runs))
    return scores[drawn].reshape(_RESAMPLES, -1)


def _limits(resampled: Array) -> tuple[Array, Array]:
    """Percentile limits over resamples, the first axis."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return low, high
