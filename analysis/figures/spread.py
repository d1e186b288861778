"""How far a mean may be off: the ends of the bar through its mark."""

from __future__ import annotations

from collections.abc import Collection

from analysis.values import Value

SPREAD_NOTE = "bars are 95 % intervals, or with fewer than three seeds the range of the seeds"
"""For captions."""


def spread(value: Value, by_seed: Collection[float]) -> tuple[float, float] | None:
    """The value's interval; without one the range of its seeds (in its unit), None for a single seed."""
    if value.ci is not None or len(by_seed) < 2:
        return value.ci
    return min(by_seed), max(by_seed)
