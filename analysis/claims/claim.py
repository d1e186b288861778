"""A claim of the paper, and what a study's records say about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from analysis.render.text import written
from analysis.reported import Reported, reported_figures
from analysis.statistics import CONFIDENCE, LEAST_SEEDS
from analysis.study import Study
from analysis.table import Better, Column, Form
from analysis.values import Value


class Verdict(StrEnum):
    """What the records say of a claim, at the study's scale."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not distinguishable"
    FEW_SEEDS = "too few seeds to tell"
    NOT_TESTED = "not tested here"


@dataclass(frozen=True)
class Claim:
    """statement: the claim in one sentence. finding: what the records give, with numbers and n.

    reported: what the paper gives for its own models and data, "" when its text has no figure.
    values: what the finding rests on, by name, for the long CSV.
    """

    key: str
    statement: str
    verdict: Verdict
    finding: str
    reported: str
    values: tuple[tuple[str, Value], ...]


ClaimTest = Callable[[Study], Claim]
"""Computes one claim from a study; its verdict is NOT_TESTED when the study lacks the runs."""

SIMULTANEOUS = f", intervals that cover at once with {100 * CONFIDENCE:.0f} %"
"""Said where a finding has several intervals, each widened for the number of comparisons."""

_POINTS = Column("points", "", 1, Better.NEITHER, Form.DIFFERENCE)
_PERCENT = Column("percent", "", 1, Better.NEITHER)
_UNITS = {"ratio": "×", "percentage points": " points", "percent": " %", "hours": " h", "seconds": " s"}
_RATIO = Column("ratio", "", 2, Better.NEITHER, Form.RATIO)


def above(value: Value, threshold: float) -> Verdict:
    """Whether a value is above a threshold, by its interval."""
    if value.value is None:
        return Verdict.NOT_TESTED
    if value.ci is None:
        return Verdict.FEW_SEEDS
    if value.ci[0] > threshold:
        return Verdict.HOLDS
    return Verdict.FAILS if value.ci[1] < threshold else Verdict.OPEN


def below(value: Value, threshold: float) -> Verdict:
    """Whether a value is below a threshold, by its interval."""
    opposite = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}
    verdict = above(value, threshold)
    return opposite.get(verdict, verdict)


def all_of(*verdicts: Verdict) -> Verdict:
    """A claim with several parts holds when all do and fails when one does."""
    order = (Verdict.FAILS, Verdict.NOT_TESTED, Verdict.FEW_SEEDS, Verdict.OPEN)
    return next((verdict for verdict in order if verdict in verdicts), Verdict.HOLDS)


def not_tested(key: str, statement: str, reason: str, reported: str = "") -> Claim:
    """The claim without a finding, and what the study lacks for it."""
    return Claim(key, statement, Verdict.NOT_TESTED, reason, reported, ())


def in_points(value: Value) -> str:
    """A difference in percentage points with its interval and n."""
    return _in_words(value, _POINTS, " points")


def in_percent(value: Value) -> str:
    """An accuracy in percent with its interval and n."""
    return _in_words(value, _PERCENT, " %")


def as_ratio(value: Value) -> str:
    """A ratio with its interval and n."""
    return _in_words(value, _RATIO, "")


def paper_says(table: str, method: str, metric: str) -> str:
    """The paper's figures for a method and metric, each with its place; "" when its text gives none."""
    figures = [each for each in reported_figures(table) if (each.method, each.metric) == (method, metric)]
    return "; ".join(f"{_figure(each)} ({each.place})" for each in figures)


def _figure(figure: Reported) -> str:
    sign = "+" if figure.unit == "percentage points" else "-"
    return f"{figure.value:{sign}g}{_UNITS[figure.unit]}".replace("-", "−")


def _in_words(value: Value, column: Column, unit: str) -> str:
    if value.value is None:
        return f"no value ({value.note})" if value.note else "no value"
    text = written(value, column, value.n)
    few = ", no interval" if value.n < LEAST_SEEDS else ""
    return f"{' '.join(filter(None, (text.number, text.interval)))}{unit} (n = {value.n}{few})"
