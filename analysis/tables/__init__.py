"""The tables of a report. Adding one: a file with a `TABLE`, and a line here."""

from __future__ import annotations

from analysis.tables import (
    comparison,
    cost,
    images,
    lag,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
    table7,
    table8,
    table9,
    time_to_accuracy,
)
from analysis.tables.spec import TableSpec

TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        table1.TABLE,
        table2.TABLE,
        table3.TABLE,
        table4.TABLE,
        table5.TABLE,
        table6.TABLE,
        table7.TABLE,
        table8.TABLE,
        table9.TABLE,
        time_to_accuracy.TABLE,
        comparison.TABLE,
        cost.TABLE,
        images.TABLE,
        lag.TABLE,
    )
}
