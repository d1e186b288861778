"""Statistics over seeds: means, paired differences and ratios, each with its interval.

An interval needs at least three seeds; with fewer there is none, whatever the values. A value that is not
finite is refused, never averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = Sequence[float] | NDArray[np.float64]

CONFIDENCE = 0.95
"""Coverage of every interval in tables, figures and claims."""

LEAST_SEEDS = 3
"""Below this number of seeds no interval is given: two values say next to nothing about their spread."""

RESAMPLES = 10_000
"""Bootstrap resamples; the limits of a 95 % interval then move by 1 % of its width between seeds."""


@dataclass(frozen=True)
class Estimate:
    """A point estimate from `n` independent values; `ci` is its interval, None below `LEAST_SEEDS`."""

    value: float
    n: int
    ci: tuple[float, float] | None


def mean(values: Numbers, comparisons: int = 1) -> Estimate:
    """The mean of independent values with its two-sided Student t interval.

    comparisons: how many intervals are to cover at once (Bonferroni); each is then wider.
    """
    sample = _finite(values)
    centre = float(sample.mean())
    n = len(sample)
    if n < LEAST_SEEDS:
        return Estimate(centre, n, None)
    half = _t_quantile(n - 1, comparisons) * float(sample.std(ddof=1)) / n**0.5
    return Estimate(centre, n, (centre - half, centre + half))


def mean_of_columns(
    samples: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """`mean` of every row of (rows, n) samples: centres, lower and upper limits; NaN limits for a small n."""
    if samples.size and not np.isfinite(samples).all():
        raise ValueError("needs finite values: set the record aside before averaging")
    n = samples.shape[1]
    centre = samples.mean(axis=1)
    half = np.full(len(samples), np.nan)
    if n >= LEAST_SEEDS:
        half = _t_quantile(n - 1, 1) * samples.std(axis=1, ddof=1) / n**0.5
    return centre, centre - half, centre + half


def paired_difference(values: Numbers, against: Numbers, comparisons: int = 1) -> Estimate:
    """The mean of `values[i] - against[i]` (i a seed) with the t interval of the differences, see `mean`."""
    _same_length(values, against)
    return mean(_finite(values) - _finite(against), comparisons)


def paired_ratio(values: Numbers, against: Numbers) -> Estimate:
    """The geometric mean of `values[i] / against[i]` (i a seed), with the t interval of the log ratios.

    Logs make the ratio and its interval the same whichever of the two is on top. All values must be positive.
    """
    _same_length(values, against)
    above, below = _finite(values), _finite(against)
    if (above <= 0).any() or (below <= 0).any():
        raise ValueError(f"a ratio needs positive values, got {list(values)} over {list(against)}")
    log = mean(np.log(above) - np.log(below))
    ci = (float(np.exp(log.ci[0])), float(np.exp(log.ci[1]))) if log.ci else None
    return Estimate(float(np.exp(log.value)), log.n, ci)


def bootstrap_mean(values: Numbers, seed: int) -> Estimate:
    """The mean of independent values with its BCa bootstrap interval (Efron 1987).

    For a paired bootstrap give it the differences. The same seed gives the same interval.
    """
    from scipy.special import ndtr, ndtri

    sample = _finite(values)
    n, centre = len(sample), float(sample.mean())
    if n < LEAST_SEEDS:
        return Estimate(centre, n, None)
    if sample.min() == sample.max():
        return Estimate(centre, n, (centre, centre))
    drawn = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    means = sample[drawn].mean(axis=1)
    bias = ndtri(((means < centre).mean() + (means <= centre).mean()) / 2)
    left_out = (centre - sample) / (n - 1)  # a mean without one value, less the mean
    acceleration = -(left_out**3).sum() / (6 * (left_out**2).sum() ** 1.5)
    tail = (1 - CONFIDENCE) / 2
    z = bias + ndtri([tail, 1 - tail])
    low, high = np.quantile(means, ndtr(bias + z / (1 - acceleration * z)))
    return Estimate(centre, n, (float(low), float(high)))


def holm(p_values: Numbers) -> list[float]:
    """p-values of several tests, adjusted so that they hold all at once (Holm 1979), in the given order."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1)))
    adjusted = np.empty_like(p)
    adjusted[order] = stepped
    return [float(value) for value in adjusted]


def _t_quantile(degrees: int, comparisons: int) -> float:
    from scipy.special import stdtrit  # a twentieth of the import time of scipy.stats

    return float(stdtrit(degrees, 1 - (1 - CONFIDENCE) / 2 / comparisons))


def _finite(values: Numbers) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) == 0:
        raise ValueError(f"needs at least one value, got {values!r}")
    if not np.isfinite(sample).all():
        raise ValueError(f"needs finite values, got {sample.tolist()}: set the record aside before averaging")
    return sample


def _same_length(values: Numbers, against: Numbers) -> None:
    if len(values) != len(against):
        raise ValueError(f"paired values need one partner each, got {len(values)} and {len(against)}")
