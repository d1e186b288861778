"""Table 8: mean seconds of each stage of a training step, FastRL against the baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from analysis.comparison import Readings, read
from analysis.measures import stage_time
from analysis.paper import difference_note, figures_beside, paper_group, paper_setting, set_beside
from analysis.reported import reported_figures
from analysis.step_frames import OPTIMISATION, STAGES
from analysis.study import Arm, Study
from analysis.table import Better, Column, Form, Row, Table, missing_notes, reported_notes
from analysis.tables.paper_columns import minus
from analysis.tables.spec import clock_note, completeness, interval_note, unique
from analysis.values import Source, Value, missing, reported

_REPORTED = "table8"
_COMPARED = ("gen", "reward", "old", "ref", "update_actor", "optimisation", "step")
"""Where a ratio says something: advantages take next to no time, and the baseline selects nothing."""

_NAMES = {
    "gen": "generation",
    "reward": "reward",
    "adv": "advantages",
    "select": "selection",
    "old": "old log-probs",
    "ref": "reference log-probs",
    "update_actor": "policy updates",
}
_PAPER_NAMES = {"gen": "generation"}
"""Stages that `analysis/reported` calls otherwise."""


@dataclass(frozen=True)
class StageTable:
    """A table with a row a stage: seconds of the baseline and of one method, and their ratio."""

    name: str
    title: str
    paper_item: str
    method: str

    def build(self, study: Study) -> Table:
        arms = unique([study.baseline, study.main_arm(self.method)])
        if len(arms) < 2:
            return Table(self.name, self.title, self.paper_item, "Stage", (), (), (), (), seeds=False)
        baseline, ours = arms
        shown = [*_measured_columns(study, baseline, ours), *_paper_columns(study, baseline, ours)]
        stages = [
            *((stage, stage_time(study, (stage,), _NAMES[stage])) for stage in STAGES),
            ("optimisation", stage_time(study, OPTIMISATION, "all but generation and reward")),
            ("step", stage_time(study, ("step",), "step")),
        ]
        rows = []
        for stage, measure in stages:
            readings = read(study, measure)
            rows.append(Row(measure.header, tuple(each.value(stage, readings) for each in shown)))
        columns, filled = tuple(each.column for each in shown), tuple(rows)
        speed_note = f"Speed: {baseline.label}'s seconds over {ours.label}'s, geometric mean over seeds."
        return Table(
            name=self.name,
            title=self.title,
            paper_item=self.paper_item,
            corner="Stage",
            columns=columns,
            rows=filled,
            notes=(
                interval_note(),
                speed_note,
                clock_note(study),
                *reported_notes(filled),
                *difference_note(study, arms, (_REPORTED,)),
            ),
            gaps=(*missing_notes(filled, columns), *completeness(study, arms)),
            seeds=False,
        )


@dataclass(frozen=True)
class StageColumn:
    """A column over stages: the value of a stage, whose seconds are given as `Readings`."""

    column: Column
    value: Callable[[str, Readings], Value]


def _measured_columns(study: Study, baseline: Arm, ours: Arm) -> list[StageColumn]:
    unit = study.clock.unit
    seconds = f"{unit} a step"

    def speed(stage: str, readings: Readings) -> Value:
        return readings.speed(ours, baseline) if stage in _COMPARED else missing(Source.DERIVED)

    return [
        *(
            StageColumn(
                Column(f"{arm.label}_{unit}", arm.label, 3, Better.NEITHER, group=seconds),
                partial(_mean, arm),
            )
            for arm in (baseline, ours)
        ),
        StageColumn(Column(f"speed_over_{baseline.label}", "Speed", 2, Better.NEITHER, Form.RATIO), speed),
    ]


def _mean(arm: Arm, stage: str, readings: Readings) -> Value:
    return readings.mean(arm)


def _paper_columns(study: Study, baseline: Arm, ours: Arm) -> list[StageColumn]:
    """What the paper reports, and for the paper's own policy and data the difference to it."""
    arms = (baseline, ours)
    figures = reported_figures(_REPORTED)
    own = all(paper_setting(study, arm).own for arm in arms)
    *seconds, speed = _measured_columns(study, baseline, ours)
    shown: list[StageColumn] = []
    training_set = set_beside(study, arms, _REPORTED, {figure.metric for figure in figures})
    if training_set is None:
        return shown
    group = paper_group(study, arms, training_set)
    of_set = [each for each in figures if training_set in ("", each.training_set)]
    suffix = f"_{training_set}" if training_set else ""
    if any(figure.unit == "seconds" for figure in of_set):
        for arm, measured in zip(arms, seconds, strict=True):
            column = Column(
                f"reported_{arm.method}_s{suffix}", arm.label, 2, Better.NEITHER, group=f"{group} (s)"
            )
            paper = StageColumn(column, _reported(study, arm, training_set, ""))
            shown += [paper, *([_minus(measured, paper)] if own and study.plan.clock == "wall" else [])]
    column = Column(f"reported_speed{suffix}", "Speed", 2, Better.NEITHER, Form.RATIO, group)
    paper = StageColumn(column, _reported(study, ours, training_set, "_speed"))
    shown += [paper, *([_minus(speed, paper)] if own else [])]
    return shown


def _reported(study: Study, arm: Arm, training_set: str, suffix: str) -> Callable[[str, Readings], Value]:
    def value(stage: str, readings: Readings) -> Value:
        metric = f"{_PAPER_NAMES.get(stage, stage)}{suffix}"
        found = figures_beside(study, arm, _REPORTED, metric, training_set)
        return reported(found[0].value, found[0].place) if found else missing(Source.REPORTED)

    return value


def _minus(measured: StageColumn, paper: StageColumn) -> StageColumn:
    key, shown = f"{measured.column.key}_minus_{paper.column.key}", paper.column
    return StageColumn(
        Column(key, "measured − paper", shown.digits, Better.NEITHER, Form.DIFFERENCE, shown.group),
        lambda stage, readings: minus(measured.value(stage, readings), paper.value(stage, readings)),
    )


TABLE = StageTable(
    name="table8", title="Seconds of each stage of a step", paper_item="Table 8", method="fastrl"
)
