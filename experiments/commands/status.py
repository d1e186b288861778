"""Show how far each cell of a study is, on this machine or on a cluster.

  fastrl status study=laptop             one line a cell
  fastrl status                          one line a study
  fastrl status study=table1 --watch     again and again, until nothing is under way
  fastrl status study=table1 --json      everything, for a program

The columns after the stages are of the first stage that is not done: its job, node, last sign of life, and
which source its state was taken from.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.commands.arguments import add_words, refuse_overrides, results_root, sorted_words
from experiments.commands.text_table import text_table
from experiments.errors import UserError
from experiments.plan import read_plan

if TYPE_CHECKING:
    from slurm.overview import CellView, Overview, StageView

_COLOURS = {"bad": "\033[31m", "done": "\033[32m", "active": "\033[33m", "": ""}
_PLAIN = "\033[0m"
_CLEAR = "\033[2J\033[H"
_REASONS = 20


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME (default: all, a line each), and paths.root=FOLDER")
    parser.add_argument("--watch", action="store_true", help="look again until nothing is under way")
    parser.add_argument("--every", type=float, default=10.0, metavar="S", help="seconds between looks")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: Namespace) -> int:
    from slurm.verdict import ACTIVE

    words = sorted_words(arguments.words)
    refuse_overrides(words, ("paths",), "a status shows the study's plan as it was run")
    root = results_root(words.overrides)
    studies = [words.study] if words.study else _studies(root)
    while True:
        overviews = [_overview(root, study) for study in studies]
        if arguments.json:
            print(json.dumps([_record(overview) for overview in overviews], indent=1, ensure_ascii=False))
            return 0
        if arguments.watch and sys.stdout.isatty():
            print(_CLEAR, end="")
        if words.study:
            _print_study(overviews[0])
        else:
            _print_studies(overviews)
        states = _counts(overviews)
        if not arguments.watch or not any(state in ACTIVE for state in states):
            return 0
        sys.stdout.flush()
        time.sleep(arguments.every)


def _overview(root: Path, study: str) -> Overview:
    from slurm.overview import study_overview

    return study_overview(read_plan(root, study), root.resolve())


def _studies(root: Path) -> list[str]:
    names = sorted(path.parent.name for path in root.glob("studies/*/plan.json"))
    if not names:
        raise UserError("There is no study.", str(root / "studies"), "run one: fastrl run study=laptop")
    return names


def _print_study(overview: Overview) -> None:
    stages = list(dict.fromkeys(stage for cell in overview.plan.cells for stage in cell.stages))
    header = ["cell", "label", "seed", "step", "left", *stages, "job", "node", "seen", "believed"]
    now = time.time()
    rows = [_row(number, view, stages, now) for number, view in enumerate(overview.cells, start=1)]
    lines = text_table(header, rows).splitlines()
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        kinds = ["", "", *map(_kind, overview.cells)]
        lines = [f"{_COLOURS[kind]}{line}{_PLAIN}" for kind, line in zip(kinds, lines, strict=True)]
    print("\n".join(lines))
    print("stages: " + ", ".join(f"{n} {state}" for state, n in _counts([overview]).most_common()))
    if overview.report is not None:
        report = overview.report
        print(f"report: {report.verdict.state}, job {report.job_id} ({report.verdict.source})")
    for line in _reasons(overview):
        print(line)
    for note in overview.notes:
        print(f"note: {note}")


def _row(number: int, view: CellView, stages: list[str], now: float) -> list[str]:
    step = f"{view.step}/{view.total}" if view.total else str(view.step or "-")
    at_work = next((each for each in view.stages.values() if each.verdict.state != "done"), None)
    seen = ""
    if at_work is not None and at_work.entry is not None and at_work.entry.state == "running":
        seen = f"{_duration(max(0.0, now - at_work.entry.heartbeat))} ago"
    return [
        str(number),
        view.cell.label,
        str(view.cell.seed),
        step,
        _duration(view.seconds_left) if view.seconds_left is not None else "",
        *(_state(view.stages[stage]) if stage in view.stages else "" for stage in stages),
        at_work.job_id if at_work else "",
        at_work.node if at_work else "",
        seen,
        at_work.verdict.source if at_work else "",
    ]


def _state(view: StageView) -> str:
    attempt = f" #{view.entry.attempt}" if view.entry is not None and view.entry.attempt > 1 else ""
    return f"{view.verdict.state}{attempt}"


def _kind(view: CellView) -> str:
    from slurm.verdict import ACTIVE, BAD

    states = {each.verdict.state for each in view.stages.values()}
    if states & BAD:
        return "bad"
    if states == {"done"}:
        return "done"
    return "active" if states & ACTIVE else ""


def _reasons(overview: Overview) -> list[str]:
    """Why stages are not running or done, for those that say so."""
    from slurm.verdict import ACTIVE

    lines = []
    for number, view in enumerate(overview.cells, start=1):
        for stage in view.stages.values():
            if stage.verdict.state not in {"done", "pending", *ACTIVE} and stage.verdict.detail:
                detail = stage.verdict.detail.splitlines()[0]
                lines.append(f"cell {number}, {stage.stage}: {stage.verdict.state}: {detail}")
    more = [f"... and {len(lines) - _REASONS} more: --json shows all"] if len(lines) > _REASONS else []
    return lines[:_REASONS] + more


def _print_studies(overviews: list[Overview]) -> None:
    rows = []
    for overview in overviews:
        counts = _counts([overview])
        done = sum(
            all(stage.verdict.state == "done" for stage in view.stages.values()) for view in overview.cells
        )
        states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
        rows.append([overview.plan.study, f"{done}/{len(overview.cells)}", states])
    print(text_table(["study", "cells done", "stages"], rows))


def _counts(overviews: list[Overview]) -> Counter[str]:
    return Counter(
        stage.verdict.state
        for overview in overviews
        for view in overview.cells
        for stage in view.stages.values()
    )


def _record(overview: Overview) -> dict[str, Any]:
    return {
        "study": overview.plan.study,
        "cells": [_cell_record(view) for view in overview.cells],
        "report": _stage_record(overview.report) if overview.report else None,
        "notes": list(overview.notes),
    }


def _cell_record(view: CellView) -> dict[str, Any]:
    return {
        "run_id": view.cell.run_id,
        "label": view.cell.label,
        "seed": view.cell.seed,
        "step": view.step,
        "total": view.total,
        "seconds_left": view.seconds_left,
        "stages": {stage: _stage_record(each) for stage, each in view.stages.items()},
    }


def _stage_record(view: StageView) -> dict[str, Any]:
    entry = view.entry
    return {
        "state": view.verdict.state,
        "source": view.verdict.source,
        "detail": view.verdict.detail,
        "attempt": entry.attempt if entry else 0,
        "updated": entry.updated if entry else None,
        "heartbeat": entry.heartbeat if entry else None,
        "job_id": view.job_id or None,
        "node": view.node or None,
        "log_tail": entry.error.log_tail if entry and entry.error else None,
    }


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
