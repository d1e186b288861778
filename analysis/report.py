"""A study's report: the tables and figures that its plan names, the tested claims, and the pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
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
from analysis.render.pdf import render_pdf
from analysis.report_cache import input_digest, is_current, remember
from analysis.study import Study, load_study
from analysis.table import Better, Column, Row, Table
from analysis.tables import TABLES
from experiments.atomic_files import write_file
from experiments.errors import UserError, did_you_mean, listed
from experiments.plan import read_plan

FORMATS = ("md", "tex", "csv", "html", "png", "pdf", "svg")
"""What a report is written as: md, tex, csv, pdf for tables, png, pdf, svg for figures, html for the page."""

_TABLE_RENDERERS: dict[str, Callable[[Table], bytes]] = {
    "md": lambda table: render_markdown(table).encode(),
    "tex": lambda table: render_latex(table).encode(),
    "csv": lambda table: render_csv(table).encode(),
    "pdf": render_pdf,
}
_FIGURE_FORMATS = ("png", "pdf", "svg")
_PAGES = {"md": render_report, "html": render_html}


@dataclass(frozen=True)
class ReportFiles:
    """A report as bytes by path in its folder. absent: paths of figures that the records have no data for.

    page: the path of the page, "" when the report has none. lacks: why, by figures without data.
    """

    files: Mapping[str, bytes]
    absent: tuple[str, ...]
    page: str
    lacks: Mapping[str, str]


def build_report(
    root: Path, study: str, only: Sequence[str] | None = None, formats: Sequence[str] = FORMATS
) -> Path:
    """Write the report of a study from its run directories, finished or not.

    only: names of tables and figures; only their files are then written, and no page. Without it, all that
    the plan's `report` names. Files: `<root>/studies/<study>/{report.html, report.md, tables/, figures/}`;
    the same records give the same bytes. Returns the page, or the study's folder when there is none.
    When neither the records nor this code have changed since the last whole report, nothing is done.
    Raises UserError for an unknown study, table, figure or format, when `only` leaves nothing to write, and
    when the disk is full.
    """
    folder = root / "studies" / study
    inputs = input_digest(root, read_plan(root, study), formats) if only is None else ""
    page = is_current(root, study, inputs) if inputs else None
    if page is not None:
        return folder / page
    made = make_report(root, study, only, formats)
    if not made.files:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in made.lacks.items())
        forms = "tables are written as md, tex, csv, and figures as png, svg; both as pdf"
        raise UserError("There is nothing to write.", reasons, "" if reasons else forms, exit_code=1)
    for name, content in made.files.items():
        write_file(folder / name, content)
    for name in made.absent:  # of an earlier report that had the data
        (folder / name).unlink(missing_ok=True)
    if inputs:
        remember(root, study, inputs, made.files, made.page)
    return folder / made.page


def check_report(
    root: Path, study: str, folder: Path, only: Sequence[str] | None = None, formats: Sequence[str] = FORMATS
) -> tuple[str, ...]:
    """How the tables, figures and pages that lie in a folder differ from what the records give.

    folder: a report that was written earlier, some of its files or all; those that it has not got are no
    fault. Returns one line a differing file, none when the folder is up to date. Raises UserError as
    `build_report` does, and when there is nothing to check.
    """
    present = sorted(
        name
        for pattern in (
            *(f"tables/*.{suffix}" for suffix in formats),
            *(f"figures/*.{suffix}" for suffix in formats),
        )
        for name in (path.relative_to(folder).as_posix() for path in folder.glob(pattern))
        if only is None or Path(name).stem in only
    )
    pages = [
        f"report.{suffix}"
        for suffix in formats
        if suffix in _PAGES and (folder / f"report.{suffix}").is_file()
    ]
    present += pages if only is None else []
    if not present:
        raise UserError("There is no report to check.", str(folder), f"write it: fastrl report study={study}")
    suffixes = sorted({Path(name).suffix.removeprefix(".") for name in present})
    made = dict(make_report(root, study, only, suffixes).files)
    further = sorted({Path(name).stem for name in present if name not in made} & {*TABLES, *FIGURES})
    if only is None and further:  # written by their names, since the plan has none of them
        made |= make_report(root, study, further, suffixes).files
    different = []
    for name in present:
        if name not in made:
            different.append(f"{name}: the records and the plan no longer give it")
        elif (folder / name).read_bytes() != made[name]:
            different.append(f"{name}: {_first_difference((folder / name).read_bytes(), made[name])}")
    return tuple(different)


def check_request(only: Sequence[str] | None, formats: Sequence[str]) -> None:
    """UserError for a table, figure or format that there is not."""
    _check_names("format", formats, FORMATS)
    _check_names("table or figure", only or (), {*TABLES, *FIGURES})


def make_report(root: Path, study: str, only: Sequence[str] | None, formats: Sequence[str]) -> ReportFiles:
    """The files of `build_report`, unwritten."""
    check_request(only, formats)
    loaded = load_study(root, study)
    report = loaded.plan.report
    _check_names("table", report.tables, TABLES)
    _check_names("figure", report.figures, FIGURES)
    tables = [TABLES[name].build(loaded) for name in (only or report.tables) if name in TABLES]
    files = {
        f"tables/{table.name}.{suffix}": _TABLE_RENDERERS[suffix](table)
        for table in tables
        for suffix in formats
        if suffix in _TABLE_RENDERERS
    }
    wanted = tuple(suffix for suffix in formats if suffix in _FIGURE_FORMATS)
    with_page = only is None and "html" in formats
    absent: list[str] = []
    figures = []
    for spec in (FIGURES[name] for name in (only or report.figures) if name in FIGURES):
        names = {suffix: f"figures/{spec.name}.{suffix}" for suffix in wanted}
        shown, drawn = _figure(spec, loaded, (*wanted, "svg") if with_page else wanted)
        figures.append(shown)
        files |= {names[suffix]: drawn[suffix] for suffix in wanted if suffix in drawn}
        absent += [] if drawn or not shown.lacks else names.values()
    lacks = {figure.name: figure.lacks for figure in figures if figure.lacks}
    if only is not None:
        return ReportFiles(files, tuple(absent), "", lacks)
    claims = tuple(test(loaded) for test in CLAIMS)
    if "csv" in formats:
        files["tables/claims.csv"] = render_csv(_as_table(claims)).encode()
    page = Page(loaded, facts(loaded), problems(loaded), claims, *split_notes(tables), tuple(figures))
    written = ""
    for suffix, render_page in _PAGES.items():
        if suffix in formats:
            written = f"report.{suffix}"
            files[written] = render_page(page).encode()
    return ReportFiles(files, tuple(absent), written, lacks)


def _figure(
    spec: FigureSpec, study: Study, formats: tuple[str, ...]
) -> tuple[ShownFigure, Mapping[str, bytes]]:
    """What the page shows of a figure, and its drawings; none for a figure without data."""
    drawing = spec.read(study)
    if isinstance(drawing, str):
        return ShownFigure(spec.name, spec.title, spec.paper_item, "", b"", drawing), {}
    files = render(drawing, tuple(dict.fromkeys(formats)))
    svg = files.get("svg", b"")
    return ShownFigure(spec.name, spec.title, spec.paper_item, drawing.caption, svg, ""), files


def _first_difference(old: bytes, new: bytes) -> str:
    """Where two files differ first, for text by line."""
    if b"\0" in old or b"\0" in new:
        return "differs"
    before, now = old.decode("utf-8", "replace").splitlines(), new.decode("utf-8", "replace").splitlines()
    for number, (one, other) in enumerate(zip(before, now, strict=False), start=1):
        if one != other:
            return f"differs first in line {number}"
    return f"has {len(before)} lines, the records give {len(now)}"


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
