"""A study's report: the tables and figures that its plan names, the tested claims, and the pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from analysis.claims import CLAIMS
from analysis.claims.claim import Claim
from analysis.figures import FIGURES
from analysis.figures.spec import FigureSpec, render
from analysis.problems import problems
from analysis.render.csv_long import render_csv
from analysis.render.html import render_html
from analysis.render.latex import render_latex
from analysis.render.markdown import render_markdown, render_report
from analysis.render.page import Page, ShownFigure, facts, split_notes
from analysis.study import Study, load_study
from analysis.table import Better, Column, Row, Table
from analysis.tables import TABLES
from experiments.atomic_files import write_file
from experiments.errors import UserError, did_you_mean, listed

FORMATS = ("md", "tex", "csv", "html", "png", "pdf")
"""What a report is written as: md, tex and csv for tables, png and pdf for figures, html for the page."""

_TABLE_RENDERERS: dict[str, Callable[[Table], str]] = {
    "md": render_markdown,
    "tex": render_latex,
    "csv": render_csv,
}
_FIGURE_FORMATS = ("png", "pdf")


def build_report(
    root: Path, study: str, only: Sequence[str] | None = None, formats: Sequence[str] = FORMATS
) -> Path:
    """Write the report of a study from its run directories, finished or not.

    only: names of tables and figures; only their files are then written, and no page. Without it, all that
    the plan's `report` names. Files: `<root>/studies/<study>/{report.html, report.md, tables/, figures/}`;
    the same records give the same bytes. Returns the page, or the study's folder when there is none.
    Raises UserError for an unknown study, table, figure or format, and when the disk is full.
    """
    _check_names("format", formats, FORMATS)
    _check_names("table or figure", only or (), {*TABLES, *FIGURES})
    loaded = load_study(root, study)
    report = loaded.plan.report
    _check_names("table", report.tables, TABLES)
    _check_names("figure", report.figures, FIGURES)
    folder = root / "studies" / study
    tables = [TABLES[name].build(loaded) for name in (only or report.tables) if name in TABLES]
    for table in tables:
        for suffix in formats:
            if suffix in _TABLE_RENDERERS:
                write_file(folder / "tables" / f"{table.name}.{suffix}", _TABLE_RENDERERS[suffix](table))
    with_page = only is None and "html" in formats
    figures = [
        _write_figure(folder, FIGURES[name], loaded, formats, with_page)
        for name in (only or report.figures)
        if name in FIGURES
    ]
    if only is not None:
        return folder
    claims = tuple(test(loaded) for test in CLAIMS)
    if "csv" in formats:
        write_file(folder / "tables" / "claims.csv", render_csv(_as_table(claims)))
    page = Page(loaded, facts(loaded), problems(loaded), claims, *split_notes(tables), tuple(figures))
    written = folder
    for suffix, render_page in (("md", render_report), ("html", render_html)):
        if suffix in formats:
            written = folder / f"report.{suffix}"
            write_file(written, render_page(page))
    return written


def _write_figure(
    folder: Path, spec: FigureSpec, study: Study, formats: Sequence[str], with_page: bool
) -> ShownFigure:
    """Write a figure's files and return what the page shows of it; a figure without data has no files."""
    lacks = spec.lacks(study)
    wanted = tuple(suffix for suffix in formats if suffix in _FIGURE_FORMATS)
    if lacks:
        for suffix in wanted:  # of an earlier report that had the data
            (folder / "figures" / f"{spec.name}.{suffix}").unlink(missing_ok=True)
        return ShownFigure(spec.name, spec.title, spec.paper_item, "", b"", lacks)
    files = render(spec, study, (*wanted, "svg") if with_page else wanted)
    for suffix in wanted:
        write_file(folder / "figures" / f"{spec.name}.{suffix}", files[suffix])
    return ShownFigure(spec.name, spec.title, spec.paper_item, spec.caption(study), files.get("svg", b""), "")


def _as_table(claims: Sequence[Claim]) -> Table:
    """What the claims rest on as one column, a row a value."""
    column = Column("value", "Value", 4, Better.NEITHER)
    rows = [Row(f"{claim.key}: {name}", (value,)) for claim in claims for name, value in claim.values]
    return Table("claims", "Claims", "", "Claim", (column,), tuple(rows), (), (), seeds=False)


def _check_names(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(
                f'There is no {kind} "{name}".', "", f"{did_you_mean(name, known)}known: {listed(known)}"
            )
