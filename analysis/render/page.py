"""The report as a document: what the Markdown and the HTML page both show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.claims.claim import Claim
from analysis.study import Study
from analysis.table import Table


@dataclass(frozen=True)
class ShownFigure:
    """A figure of the page. svg: its drawing, b"" when it can't be drawn; lacks: why not, "" otherwise."""

    name: str
    title: str
    paper_item: str
    caption: str
    svg: bytes
    lacks: str


@dataclass(frozen=True)
class Page:
    """facts: (what, value) pairs about the study. problems: what to know before trusting it.

    common_notes: those of several tables, said once; `tables` come without them.
    """

    study: Study
    facts: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    common_notes: tuple[str, ...]
    figures: tuple[ShownFigure, ...]


def split_notes(tables: Sequence[Table]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables without the notes that several of them have, and those notes."""
    counted = Counter(note for table in tables if table.rows for note in table.notes)
    common = tuple(note for note, count in counted.items() if count > 1)
    own = tuple(
        replace(each, notes=tuple(note for note in each.notes if note not in common)) for each in tables
    )
    return own, common


def facts(study: Study) -> tuple[tuple[str, str], ...]:
    """The study in a few pairs: runs, policy, data, machine, clock, code."""
    trained = [record for record in study.records.values() if record.trained]
    clock = "CPU seconds of one process" if study.plan.clock == "cpu" else "wall-clock seconds"
    pairs = (
        ("Runs", f"{len(trained)} trained of {len({cell.run_id for cell in study.plan.cells})} planned"),
        ("Arms", str(len(study.arms))),
        ("Policy", _labels(study, "model")),
        ("Training questions", _labels(study, "dataset")),
        ("Hardware", "; ".join(dict.fromkeys(record.hardware or "unknown" for record in trained))),
        ("Time", f"{clock} ({study.clock.unit}) of training, without validations and checkpoints"),
        ("Baseline", study.baseline.label),
        ("Planned by commit", study.plan.commit or "none"),
    )
    return tuple((name, value) for name, value in pairs if value)


def _labels(study: Study, part: str) -> str:
    parts = [record.config.get(part) for record in study.records.values()]
    named = [str(each.get("label") or each.get("name")) for each in parts if isinstance(each, dict)]
    return ", ".join(dict.fromkeys(named))
