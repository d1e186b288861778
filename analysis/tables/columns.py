"""The kinds of columns that tables over arms are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from analysis.comparison import read
from analysis.measures import Measure, accuracy, decoding_name, setting
from analysis.study import Arm, Study
from analysis.table import Better, Column, Form
from analysis.values import Source, Value, missing


@dataclass(frozen=True)
class ArmColumn:
    """A column of a table over arms: its header, and the value of each arm.

    more: further values of an arm, which contradict the first; each gets a row of its own.
    paper: the CSV of `analysis/reported` that the values are from or against, "" for none.
    """

    column: Column
    value: Callable[[Arm], Value]
    more: Callable[[Arm], tuple[Value, ...]] = lambda arm: ()
    paper: str = ""


def mean_column(study: Study, measure: Measure, group: str = "") -> ArmColumn:
    """A measure's mean over seeds."""
    column = Column(measure.key, measure.header, measure.digits, measure.better, Form.NUMBER, group)
    return ArmColumn(column, read(study, measure).mean)


def setting_column(study: Study, path: str, header: str, group: str = "") -> ArmColumn:
    """A number of the arm's config, by its dotted path, as it is written there."""
    column = Column(path, header, 0, Better.NEITHER, Form.SETTING, group)
    return ArmColumn(column, read(study, setting(path, header)).mean)


def difference_column(study: Study, measure: Measure, against: Arm, header: str, group: str) -> ArmColumn:
    """A measure's paired difference to another arm; that arm's own row has none."""
    readings = read(study, measure)
    key = f"{measure.key}_minus_{against.label}"

    def value(arm: Arm) -> Value:
        return missing(Source.DERIVED) if arm.id == against.id else readings.difference(arm, against)

    column = Column(key, header, measure.digits, Better.NEITHER, Form.DIFFERENCE, group)
    return ArmColumn(column, value)


def change_column(study: Study, measure: Measure, header: str, group: str = "") -> ArmColumn:
    """A measure's paired difference to the baseline of the arm's own policy and data."""
    readings = read(study, measure)

    def value(arm: Arm) -> Value:
        baseline = study.baseline_of(arm)
        return missing(Source.DERIVED) if arm.id == baseline.id else readings.difference(arm, baseline)

    key, label = f"{measure.key}_minus_{study.baseline.label}", f"Change from {study.baseline.label} (points)"
    column = Column(key, header, measure.digits, Better.NEITHER, Form.DIFFERENCE, group or label)
    return ArmColumn(column, value)


def accuracy_columns(study: Study, benchmark: str, full: Arm) -> tuple[ArmColumn, ...]:
    """In-domain accuracy in every decoding, then the hottest one's change from an arm."""
    hottest = study.main_decoding(benchmark)
    return (
        *(
            mean_column(study, accuracy(benchmark, decoding), "In-domain accuracy (%)")
            for decoding in study.decodings(benchmark)
        ),
        difference_column(
            study,
            accuracy(benchmark, hottest),
            full,
            decoding_name(hottest),
            f"Change from {full.label} (points)",
        ),
    )


def speed_column(study: Study, time: Measure, header: str = "Speed", group: str = "") -> ArmColumn:
    """How many times less of a time an arm takes than its baseline, whose own speed is 1."""
    readings = read(study, time)

    def value(arm: Arm) -> Value:
        baseline = study.baseline_of(arm)
        speed = readings.speed(arm, baseline)
        return replace(speed, ci=None) if arm.id == baseline.id else speed

    column = Column(f"speed_of_{time.key}", header, 2, Better.HIGHER, Form.RATIO, group)
    return ArmColumn(column, value)


def renamed(column: ArmColumn, header: str) -> ArmColumn:
    """The same column under another header."""
    return replace(column, column=replace(column.column, header=header))
