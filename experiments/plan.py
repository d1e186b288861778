"""A study's plan: the cells to run and the tables and figures they feed, as `studies/<study>/plan.json`.

Standard library only: analysis imports this module without the rest of the experiments package.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.atomic_files import write_json
from experiments.errors import UserError

SCHEMA = 1

OWN_TEST = "own"
"""As the in-domain benchmark of a study: for each cell the one that is called as its training set."""


@dataclass(frozen=True)
class Cell:
    """One resolved configuration of a study, and the run that holds its results.

    arm: identity of the cells that differ only in seed. label: the arm's row in tables, unique per arm.
    group: tag of the study entry that named the cell first; groups: tags of every entry that reaches it.
    tau: the MDAP threshold, None for a method without one. overrides: Hydra overrides that compose the cell.
    stages: in the order in which they run.
    """

    run_id: str
    arm: str
    label: str
    group: str
    groups: tuple[str, ...]
    seed: int
    method: str
    model: str
    dataset: str
    engine: str
    tau: float | None
    overrides: tuple[str, ...]
    stages: tuple[str, ...]


@dataclass(frozen=True)
class ReportSettings:
    """What the report of a study shows.

    in_domain: the benchmark of the main accuracy column, or `OWN_TEST`; out_of_domain: further benchmarks.
    target_accuracy: validation accuracy in [0, 1] that time-to-accuracy counts towards.
    """

    tables: tuple[str, ...]
    figures: tuple[str, ...]
    in_domain: str
    out_of_domain: tuple[str, ...]
    target_accuracy: float


@dataclass(frozen=True)
class Plan:
    """The cells of a study and its report.

    baseline: label or method name that speeds are relative to. clock: `cpu` or `wall`, the seconds of tables.
    commit: of the code that planned it, None outside a git checkout. created: unix seconds.
    """

    study: str
    title: str
    baseline: str
    clock: str
    commit: str | None
    created: float
    cells: tuple[Cell, ...]
    report: ReportSettings

    @property
    def arms(self) -> dict[str, tuple[Cell, ...]]:
        """Cells by arm, in the plan's order."""
        arms: dict[str, tuple[Cell, ...]] = {}
        for cell in self.cells:
            arms[cell.arm] = (*arms.get(cell.arm, ()), cell)
        return arms


def plan_path(root: Path, study: str) -> Path:
    """Where the plan of a study lies under a results root."""
    return root / "studies" / study / "plan.json"


def write_plan(root: Path, plan: Plan) -> Path:
    """Write `plan.json` by write-and-rename and return its path. Raises WriteError; an old plan stays."""
    path = plan_path(root, plan.study)
    write_json(path, {"schema": SCHEMA, **dataclasses.asdict(plan)})
    return path


def read_plan(root: Path, study: str) -> Plan:
    """The plan of a study. Raises UserError when there is none, or when it was written by another version."""
    path = plan_path(root, study)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f'There is no plan of the study "{study}".',
            str(path),
            f"run it first: fastrl run study={study}; or name another results folder: paths.root=FOLDER",
        ) from None
    except ValueError as error:
        raise UserError(
            f"The plan is not valid JSON: {error}.",
            str(path),
            f"write it anew: fastrl run study={study}",
            exit_code=1,
        ) from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise UserError(
            f"The plan has schema {found!r}, this version reads {SCHEMA}.",
            str(path),
            f"write it anew: fastrl run study={study} (finished runs are kept)",
            exit_code=1,
        )
    try:
        return _plan(record)
    except (KeyError, TypeError) as error:
        raise UserError(
            f"The plan lacks or misnames a field: {error}.",
            str(path),
            f"write it anew: fastrl run study={study} (finished runs are kept)",
            exit_code=1,
        ) from None


def _plan(record: dict[str, Any]) -> Plan:
    fields = {key: value for key, value in record.items() if key != "schema"}
    cells = tuple(Cell(**_with_tuples(cell)) for cell in record["cells"])
    report = ReportSettings(**_with_tuples(record["report"]))
    return Plan(**{**fields, "cells": cells, "report": report})


def _with_tuples(record: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
