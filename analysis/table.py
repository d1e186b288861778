"""A table as data: columns, rows of values, notes. Renderers turn it into text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analysis.values import NO_RUN, Source, Value


class Better(StrEnum):
    """Which end of a column is the good one: its best value is set in bold, its header carries an arrow."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Form(StrEnum):
    """How a column's numbers are written."""

    NUMBER = "number"
    DIFFERENCE = "difference"
    RATIO = "ratio"
    SETTING = "setting"


@dataclass(frozen=True)
class Column:
    """key: name in the long CSV, with the unit. group: header over neighbouring columns, "" for none."""

    key: str
    header: str
    digits: int
    better: Better
    form: Form = Form.NUMBER
    group: str = ""


@dataclass(frozen=True)
class Row:
    """One row: its label and one value a column."""

    label: str
    values: tuple[Value, ...]

    @property
    def n(self) -> int:
        """The row's seeds: the largest n of its values."""
        return max((value.n for value in self.values), default=0)


@dataclass(frozen=True)
class Table:
    """name: file name and registry key. paper_item: the paper's table that it follows, "" for none.

    corner: header over the row labels. notes: sentences on how to read it. gaps: sentences on what is missing
    from it and why. seeds: whether rows stand for arms, so that a column with their number makes sense.
    """

    name: str
    title: str
    paper_item: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    gaps: tuple[str, ...]
    seeds: bool

    def best_rows(self, column: int) -> frozenset[int]:
        """Indices of the rows with the column's best value as it is printed; empty without a contest."""
        spec = self.columns[column]
        printed = {
            index: round(value.value, spec.digits)
            for index, row in enumerate(self.rows)
            if (value := row.values[column]).value is not None and value.source is not Source.REPORTED
        }
        if spec.better is Better.NEITHER or len(printed) < 2:
            return frozenset()
        best = max(printed.values()) if spec.better is Better.HIGHER else min(printed.values())
        return frozenset(index for index, number in printed.items() if number == best)


def reported_columns(table: Table) -> frozenset[int]:
    """Indices of the columns that hold what the paper reports."""
    return frozenset(
        index
        for index in range(len(table.columns))
        if any(row.values[index].source is Source.REPORTED for row in table.rows)
    )


def reported_notes(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """Where the reported values among the rows are from, as one sentence; nothing when there are none."""
    values = [value for row in rows for value in row.values]
    places = dict.fromkeys(value.note for value in values if value.source is Source.REPORTED and value.note)
    if not places:
        return ()
    return (f"Paper: what it reports for its own policies and data ({'; '.join(places)}).",)


def missing_notes(rows: tuple[Row, ...], columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Why dashes are dashes: each reason once, with its rows; missing runs are counted elsewhere."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for value, column in zip(row.values, columns, strict=True):
            if value.value is None and value.note not in ("", NO_RUN):
                reason = f"{column.group} {column.header}".strip() + f": {value.note}"
                reasons.setdefault(reason, []).append(row.label)
    return tuple(f"{reason} ({', '.join(labels)})." for reason, labels in reasons.items())
