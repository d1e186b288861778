"""Figures that the paper states in its text, one CSV a table; nothing here is measured.

Columns: item (the paper's table or figure), section, version ("" for all), training_set, model, method,
tau ("" where the method's own value is meant), metric, value, unit. Where the paper contradicts itself, both
figures have a row, the table's own first.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Reported:
    """One reported figure; `value` in `unit`."""

    item: str
    section: str
    version: str
    training_set: str
    model: str
    method: str
    tau: float | None
    metric: str
    value: float
    unit: str

    @property
    def place(self) -> str:
        """Where it is reported, and of what, in words."""
        where = " ".join(filter(None, (self.item, self.section, self.version)))
        return f"{where}: {', '.join(filter(None, (self.training_set, self.model)))}"


@cache
def reported_figures(name: str) -> tuple[Reported, ...]:
    """The rows of `analysis/reported/<name>.csv`."""
    path = Path(__file__).parent / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        return tuple(_figure(row) for row in csv.DictReader(stream))


def _figure(row: dict[str, str]) -> Reported:
    return Reported(
        item=row["item"],
        section=row["section"],
        version=row["version"],
        training_set=row["training_set"],
        model=row["model"],
        method=row["method"],
        tau=float(row["tau"]) if row["tau"] else None,
        metric=row["metric"],
        value=float(row["value"]),
        unit=row["unit"],
    )
