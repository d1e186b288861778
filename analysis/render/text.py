"""Values as text, the same in every format; a renderer adds only its format's escapes and marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from analysis.statistics import CONFIDENCE
from analysis.table import Better, Column, Form, Table
from analysis.values import Source, Value

DASH = "—"
_ROUNDING = 0.5
"""Of the last printed digit: an interval whose middle is further from its value is written by its limits."""
_ARROWS = {Better.HIGHER: "\u00a0↑", Better.LOWER: "\u00a0↓", Better.NEITHER: ""}


@dataclass(frozen=True)
class Written:
    """A value as text: the number, its interval ("" for none), and its n where that is not the row's."""

    number: str
    interval: str
    n: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.number, self.interval, self.n)))


def written(value: Value, column: Column, row_n: int) -> Written:
    """A value in its column's form."""
    if value.value is None:
        return Written(DASH, "", "")
    n = "" if value.source is Source.REPORTED or value.n == row_n else f"(n={value.n})"
    return Written(_number(value.value, column), _interval(value, column), n)


def header(column: Column) -> str:
    """A column's own header, with an arrow towards the good end after a no-break space."""
    return f"{column.header}{_ARROWS[column.better]}"


def header_groups(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Spanning headers over neighbouring columns with the same group: (text, number of columns)."""
    return [(group, len(list(members))) for group, members in groupby(columns, key=lambda each: each.group)]


def provenance(value: Value) -> str:
    """Where a value comes from, as one line for a tooltip."""
    if value.source is Source.REPORTED:
        return f"reported: {value.note}" if value.note else "not reported"
    if value.value is None:
        return value.note or "not planned"
    ci = (
        f", {100 * CONFIDENCE:.0f} % interval [{value.ci[0]:.6g}, {value.ci[1]:.6g}]"
        if value.ci
        else ", no interval"
    )
    seeds = "1 seed" if value.n == 1 else f"{value.n} seeds"
    return f"{value.value:.6g}, {seeds}{ci}; {value.source}; runs: {', '.join(value.run_ids)}"


def seeds_text(table: Table, row: int) -> str:
    """The number of seeds behind a row."""
    return str(table.rows[row].n) if table.rows[row].n else DASH


def _number(value: float, column: Column) -> str:
    if column.form is Form.SETTING:
        return f"{value:g}".replace("-", "−")
    rounded = round(value, column.digits) + 0.0  # no negative zero
    sign = "+" if column.form is Form.DIFFERENCE else "-"
    text = f"{rounded:{sign}.{column.digits}f}".replace("-", "−")
    return f"{text}×" if column.form is Form.RATIO else text


def _interval(value: Value, column: Column) -> str:
    if value.value is None or value.ci is None or value.ci[0] == value.ci[1]:
        return ""
    low, high = value.ci
    lopsided = abs((low + high) / 2 - value.value) > _ROUNDING * 10.0**-column.digits
    if column.form is Form.RATIO or lopsided:
        sign = "+" if column.form is Form.DIFFERENCE else "-"
        limits = [f"{limit + 0.0:{sign}.{column.digits}f}".replace("-", "−") for limit in (low, high)]
        return f"[{', '.join(limits)}]"
    return f"± {(high - low) / 2:.{column.digits}f}"
