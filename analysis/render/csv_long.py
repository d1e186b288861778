"""The long CSV: one line a value, with its provenance."""

from __future__ import annotations

import csv
import io

from analysis.table import Table

HEADER = ("table", "row", "column", "value", "n", "ci_low", "ci_high", "source", "run_ids")

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What begins a formula, or comes before one; some spreadsheets take the wide forms for the others."""


def render_csv(table: Table) -> str:
    """A table as CSV with the columns `HEADER`; a missing value is an empty field, numbers have 12 digits.

    Words that a spreadsheet would take for a formula are led by an apostrophe; numbers are as they are.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for row in table.rows:
        for column, value in zip(table.columns, row.values, strict=True):
            low, high = value.ci or (None, None)
            numbers = [_full(number) for number in (value.value, low, high)]
            writer.writerow(
                (
                    *map(_inert, (table.name, row.label, column.key)),
                    numbers[0],
                    value.n,
                    *numbers[1:],
                    str(value.source),
                    _inert(";".join(value.run_ids)),
                )
            )
    return text.getvalue()


def _inert(words: str) -> str:
    """Words that stay words in a spreadsheet, which reads a field of certain first letters as a formula."""
    return f"'{words}" if words.startswith(_FORMULA) else words


def _full(number: float | None) -> str:
    return "" if number is None else f"{number:.12g}"
