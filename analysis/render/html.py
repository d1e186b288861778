"""The report as one HTML page that needs nothing else: styles, figures and a small script inside."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.claims.claim import Claim, Verdict
from analysis.render.page import Page, ShownFigure
from analysis.render.text import header, header_groups, provenance, seeds_text, written
from analysis.table import Table, reported_columns

if TYPE_CHECKING:
    from jinja2 import Environment

_CHIPS = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.OPEN: "open",
    Verdict.FEW_SEEDS: "open",
    Verdict.NOT_TESTED: "untested",
}


def render_html(page: Page) -> str:
    """The page; every text in it is escaped, whatever a label or an error message holds."""
    tested = [claim for claim in page.claims if claim.verdict is not Verdict.NOT_TESTED]
    untested = [claim for claim in page.claims if claim.verdict is Verdict.NOT_TESTED]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            tested=[_claim(claim) for claim in tested],
            untested=untested,
            tables=[_table(table) for table in page.tables],
            figures=[_figure(figure) for figure in page.figures],
            runs=_runs(page),
        )
    )


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _claim(claim: Claim) -> dict[str, object]:
    return {"claim": claim, "chip": _CHIPS[claim.verdict]}


def _table(table: Table) -> dict[str, object]:
    """A table as the template wants it: spanning headers, headers, rows of cells with tooltips."""
    best = [table.best_rows(column) for column in range(len(table.columns))]
    reported = reported_columns(table)
    kinds = ["reported" if column in reported else "" for column in range(len(table.columns))]
    starts = _group_starts(table)
    rows = []
    for index, row in enumerate(table.rows):
        cells = []
        for column, value in enumerate(row.values):
            cells.append(
                {
                    "text": written(value, table.columns[column], row.n),
                    "best": index in best[column],
                    "title": provenance(value),
                    "value": "" if value.value is None else f"{value.value:.12g}",
                    "classes": _classes(kinds[column], column in starts),
                }
            )
        rows.append({"label": row.label, "seeds": seeds_text(table, index), "cells": cells})
    groups = header_groups(table.columns)
    return {
        "table": table,
        "groups": [(_unbroken(text), width) for text, width in groups]
        if any(text for text, _ in groups)
        else [],
        "headers": [
            {"text": _unbroken(header(column)), "classes": _classes(kind, index in starts)}
            for index, (column, kind) in enumerate(zip(table.columns, kinds, strict=True))
        ],
        "rows": rows,
    }


def _unbroken(text: str) -> str:
    """A header that does not break inside a unit or an equation, nor after a minus."""
    return text.replace(" = ", "\u00a0=\u00a0").replace(" − ", " −\u00a0").replace("U-s", "U\u2011s")


def _classes(kind: str, starts_group: bool) -> str:
    return " ".join(filter(None, (kind, "starts" if starts_group else "")))


def _figure(figure: ShownFigure) -> dict[str, object]:
    return {"figure": figure, "source": _data_uri(figure.svg) if figure.svg else ""}


def _group_starts(table: Table) -> set[int]:
    """Indices of the columns at which a new spanning header begins."""
    starts, first = set(), 0
    for _, width in header_groups(table.columns):
        starts.add(first)
        first += width
    return starts


def _runs(page: Page) -> list[dict[str, str]]:
    """The appendix: every planned run with its states and origin."""
    study = page.study
    aside = {each.cell.run_id: f"{each.where}: {each.reason}" for each in study.set_aside}
    rows = []
    for cell in study.plan.cells:
        record = study.records.get(cell.run_id)
        row = {"run_id": cell.run_id, "label": cell.label, "seed": str(cell.seed)}
        row["overrides"] = " ".join(cell.overrides)
        if record is None:
            row |= {"state": f"set aside: {aside[cell.run_id]}", "commit": "", "hardware": ""}
        else:
            changes = " + changes" if record.dirty else ""
            row["commit"] = f"{record.commit[:10]}{changes}" if record.commit else ""
            row |= {"state": _state(record.states), "hardware": record.hardware}
        rows.append(row)
    return rows


def _state(states: Mapping[str, str]) -> str:
    if set(states.values()) == {"done"}:
        return "done"
    return "; ".join(f"{stage} {state}" for stage, state in states.items() if state != "done")


def _data_uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"
