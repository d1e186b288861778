"""The long CSV: one line a value, with its provenance."""

from __future__ import annotations

import csv
import io

from analysis.table import Table

HEADER = ("table", "row", "column", "value", "n", "ci_low", "ci_high", "source", "run_ids")


def render_csv(table: Table) -> str:
    """A table as CSV with the columns `HEADER`; a missing value is an empty field, numbers have 12 digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for row in table.rows:
        for column, value in zip(table.columns, row.values, strict=True):
            low, high = value.ci or (None, None)
            numbers = [_full(number) for number in (value.value, low, high)]
            writer.writerow(
                (
                    table.name,
                    row.label,
                    column.key,
                    numbers[0],
                    value.n,
                    *numbers[1:],
                    str(value.source),
                    ";".join(value.run_ids),
                )
            )
    return text.getvalue()


def _full(number: float | None) -> str:
    return "" if number is None else f"{number:.12g}"
