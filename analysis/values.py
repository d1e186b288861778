"""One value of a table, and everything that says where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analysis.statistics import Estimate


class Source(StrEnum):
    """How a value came about. Values of different sources never share a column and are never averaged."""

    MEASURED = "measured"
    REPORTED = "reported"
    SIMULATED = "simulated"
    DERIVED = "derived"


NO_RUN = "no finished run"
"""The note of a value whose planned runs are not there; tables count those runs instead of repeating it."""


@dataclass(frozen=True)
class Value:
    """A number with its provenance.

    value: None when there is no such number; `note` then says why ("" when nothing was planned).
    n: independent runs behind it. ci: 95 % interval over them, None for fewer than three.
    run_ids: the runs that it was computed from, sorted; empty for a reported one.
    note: for a reported value, the place where it is reported.
    """

    value: float | None
    n: int
    ci: tuple[float, float] | None
    source: Source
    run_ids: tuple[str, ...]
    note: str = ""


def measured(estimate: Estimate, run_ids: tuple[str, ...], scale: float = 1.0) -> Value:
    """A mean over runs, times `scale` (100 for percent)."""
    return _of_estimate(estimate, run_ids, scale, Source.MEASURED)


def derived(estimate: Estimate, run_ids: tuple[str, ...], scale: float = 1.0) -> Value:
    """A difference or ratio of measured values, times `scale`."""
    return _of_estimate(estimate, run_ids, scale, Source.DERIVED)


def reported(value: float, note: str) -> Value:
    """A figure that a publication states; `note` names the place."""
    return Value(value, 0, None, Source.REPORTED, (), note)


def missing(source: Source, note: str = "") -> Value:
    """No value; shown as a dash."""
    return Value(None, 0, None, source, (), note)


def _of_estimate(estimate: Estimate, run_ids: tuple[str, ...], scale: float, source: Source) -> Value:
    ci = (estimate.ci[0] * scale, estimate.ci[1] * scale) if estimate.ci else None
    return Value(estimate.value * scale, estimate.n, ci, source, tuple(sorted(run_ids)))
