"""Several benchmarks in one number or one curve: interquartile mean and performance profile.

After Agarwal et al. 2021 (rliable), on scores of runs times benchmarks. A run gives its scores on all
benchmarks together, so resampling draws whole runs, where rliable draws each benchmark's apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analysis.comparison import read
from analysis.measures import accuracy
from analysis.statistics import CONFIDENCE, LEAST_SEEDS, Estimate
from analysis.study import Arm, Study

Array = NDArray[np.float64]

_RESAMPLES = 2000
_SEED = 0
_TRIMMED = 0.25


def score_matrix(study: Study, arm: Arm) -> tuple[Array, tuple[str, ...]]:
    """(runs, benchmarks) accuracies less the baseline's mean on the benchmark, as fractions, and run ids.

    Benchmarks differ far more than methods do, so their accuracies are comparable only against a baseline.
    Runs that lack a benchmark are left out; there are none when the baseline lacks one.
    """
    benchmarks = (study.plan.report.in_domain, *study.plan.report.out_of_domain)
    readings = [read(study, accuracy(name, study.main_decoding(name))) for name in benchmarks]
    by_benchmark = [each.by_seed(arm) for each in readings]
    base = [list(each.by_seed(study.baseline_of(arm)).values()) for each in readings]
    if not all(base):
        return np.empty((0, len(benchmarks))), ()
    seeds = [seed for seed in arm.runs if all(seed in values for values in by_benchmark)]
    scores = np.array([[values[seed] for values in by_benchmark] for seed in seeds], dtype=np.float64)
    changes = scores.reshape(len(seeds), len(benchmarks)) - [np.mean(values) for values in base]
    return changes, tuple(arm.runs[seed] for seed in seeds)


def interquartile_mean(scores: Array) -> float:
    """The mean of the middle half of all scores, a quarter cut off at each end (rounded down)."""
    ordered = np.sort(scores, axis=None)
    cut = int(_TRIMMED * len(ordered))
    return float(ordered[cut : len(ordered) - cut].mean())


def interquartile_estimate(scores: Array) -> Estimate:
    """`interquartile_mean` of (runs, benchmarks) scores with its interval over runs."""
    low, high = _interval(scores, lambda drawn: np.array([interquartile_mean(drawn)]))
    ci = None if np.isnan(low[0]) else (float(low[0]), float(high[0]))
    return Estimate(interquartile_mean(scores), len(scores), ci)


def performance_profile(scores: Array, thresholds: Array) -> tuple[Array, Array, Array]:
    """The share of all scores above each threshold with its interval over runs (NaN for few runs)."""
    low, high = _interval(scores, lambda drawn: _shares_above(drawn, thresholds))
    return _shares_above(scores, thresholds), low, high


def _shares_above(scores: Array, thresholds: Array) -> Array:
    return np.asarray((scores.reshape(-1, 1) > thresholds).mean(axis=0), dtype=np.float64)


def _interval(scores: Array, statistic: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Percentile limits of a statistic over resampled runs."""
    runs = len(scores)
    if runs < LEAST_SEEDS:
        nothing = np.full_like(statistic(scores), np.nan)
        return nothing, nothing
    rng = np.random.default_rng(_SEED)
    values = np.stack([statistic(scores[rng.integers(0, runs, runs)]) for _ in range(_RESAMPLES)])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=0)
    return low, high
