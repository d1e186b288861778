"""Whether the tables and figures that a study names exist, found before hours of runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from experiments.errors import UserError, did_you_mean, listed
from experiments.plan import Plan


def check_report_names(plan: Plan) -> None:
    """Raises UserError for the first unknown table or figure of a plan's report."""
    from analysis.figures import FIGURES
    from analysis.tables import TABLES

    _check(plan.study, "table", plan.report.tables, TABLES)
    _check(plan.study, "figure", plan.report.figures, FIGURES)


def _check(study: str, kind: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            way_out = f"{did_you_mean(name, known)}{kind}s: {listed(known)}"
            raise UserError(f'There is no {kind} "{name}".', f"report.{kind}s of the study {study}", way_out)
