"""Tables and the report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.claims.claim import Claim, Verdict
from analysis.render.page import Page
from analysis.render.text import DASH, header, seeds_text, written
from analysis.table import Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$&])")


def escape(text: str) -> str:
    """Text that shows as it is in Markdown, also inside a table: special characters escaped, one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def render_markdown(table: Table) -> str:
    """A table with its title above and its notes below."""
    follows = f" (the paper's {escape(table.paper_item)})" if table.paper_item else ""
    lines = [f"**{escape(table.title)}**{follows}", ""]
    if table.rows:
        lines += [*_grid(table), ""]
    else:
        lines += ["No arm of this study feeds this table.", ""]
    lines += [f"{escape(note)}  " for note in (*table.notes, *table.gaps)]
    return "\n".join(lines).rstrip() + "\n"


def render_report(page: Page) -> str:
    """The report: facts, problems, claims, tables, figures (as links to `figures/*.png`) and runs."""
    plan = page.study.plan
    lines = [f"# {escape(plan.title)}", "", f"Study {escape(plan.study)}.", ""]
    lines += [f"- {name}: {escape(value)}" for name, value in page.facts]
    if page.problems:
        lines += [
            "",
            "**Before you trust these numbers**",
            "",
            *(f"- {escape(each)}" for each in page.problems),
        ]
    lines += ["", "## What the paper claims, and what these runs show", "", *_claims(page.claims)]
    lines += ["", "## Tables", "", *(f"{escape(note)}  " for note in page.common_notes), ""]
    for table in page.tables:
        lines += [render_markdown(table)]
    lines += ["## Figures", ""]
    for figure in page.figures:
        title = escape(figure.title)
        if figure.lacks:
            lines += [f"**{title}.** Not drawn: {escape(figure.lacks)}.", ""]
        else:
            lines += [
                f"![{title}](figures/{figure.name}.png)",
                "",
                f"**{title}.** {escape(figure.caption)}",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def _claims(claims: Sequence[Claim]) -> list[str]:
    lines = []
    for claim in claims:
        if claim.verdict is not Verdict.NOT_TESTED:
            reported = f" *Reported in the paper: {escape(claim.reported)}.*" if claim.reported else ""
            lines.append(
                f"- **{escape(claim.verdict)}**: {escape(claim.statement)} {escape(claim.finding)}{reported}"
            )
    untested = [claim for claim in claims if claim.verdict is Verdict.NOT_TESTED]
    lines += [f"- {claim.verdict}: {escape(claim.statement)} {escape(claim.finding)}" for claim in untested]
    return lines


def _grid(table: Table) -> list[str]:
    heads = [escape(f"{column.group} {header(column)}".strip()) for column in table.columns]
    seeds = ["Seeds"] if table.seeds else []
    best = [table.best_rows(column) for column in range(len(table.columns))]
    lines = [
        _line([escape(table.corner), *seeds, *heads]),
        _line([":--", *["--:"] * (len(seeds) + len(heads))]),
    ]
    for index, row in enumerate(table.rows):
        cells = []
        for column, value in enumerate(row.values):
            text = written(value, table.columns[column], row.n)
            number = f"**{escape(text.number)}**" if index in best[column] else escape(text.number)
            cells.append(" ".join(filter(None, (number, escape(text.interval), escape(text.n)))))
        lines.append(
            _line([escape(row.label) or DASH, *([seeds_text(table, index)] if seeds else []), *cells])
        )
    return lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
