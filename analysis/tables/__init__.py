"""The tables of a report. Adding one: a file with a `TABLE`, and a line here."""

from __future__ import annotations

from analysis.tables import lag, table1, table2, table4, table5, table7, table8, time_to_accuracy
from analysis.tables.spec import TableSpec

TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        table1.TABLE,
        table2.TABLE,
        table4.TABLE,
        table5.TABLE,
        table7.TABLE,
        table8.TABLE,
        time_to_accuracy.TABLE,
        lag.TABLE,
    )
}
