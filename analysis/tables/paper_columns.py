"""The columns of a table over arms that hold what the paper reports, and the difference to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.measures import training_time
from analysis.paper import figures_beside, paper_group, paper_setting, set_beside
from analysis.reported import reported_figures
from analysis.study import Arm, Study
from analysis.table import Better, Column, Form
from analysis.tables.columns import ArmColumn, mean_column, speed_column
from analysis.values import Source, Value, missing, reported


@dataclass(frozen=True)
class PaperMetric:
    """A metric of a CSV of `analysis/reported`, and how it is shown.

    measured: the column that it stands for, in the same unit, None when the study has nothing of the kind.
    """

    name: str
    header: str
    form: Form
    digits: int
    measured: ArmColumn | None


def training_columns(
    study: Study, arms: Sequence[Arm], table: str, *further: PaperMetric, by_tau: bool = False
) -> tuple[ArmColumn, ...]:
    """Training time, speed, and what the paper reports of `further` and of the speed."""
    time = training_time(study)
    speed = speed_column(study, time, group="Training")
    metrics = (*further, PaperMetric("speed", "Speed", Form.RATIO, 2, speed))
    return (mean_column(study, time, "Training"), speed, *paper_columns(study, arms, table, metrics, by_tau))


def paper_columns(
    study: Study, arms: Sequence[Arm], table: str, metrics: Sequence[PaperMetric], by_tau: bool = False
) -> tuple[ArmColumn, ...]:
    """What the paper reports for each arm's method, by a table's CSV, for `set_beside`.

    Where an arm's policy and data are the paper's own, a further column has what was measured minus what is
    reported. by_tau: see `figures_beside`.
    """
    training_set = set_beside(study, arms, table, {metric.name for metric in metrics})
    if training_set is None:
        return ()
    own = any(paper_setting(study, arm).own for arm in arms)
    columns: list[ArmColumn] = []
    for metric in metrics:
        if training_set and not _reports(table, metric.name, training_set):
            continue
        column = _reported_column(study, arms, table, metric, training_set, by_tau)
        columns.append(column)
        if own and metric.measured is not None:
            columns.append(_minus_paper(study, metric.measured, column))
    return tuple(columns)


def _reports(table: str, metric: str, training_set: str) -> bool:
    wanted = (metric, training_set)
    return any((figure.metric, figure.training_set) == wanted for figure in reported_figures(table))


def _reported_column(
    study: Study, arms: Sequence[Arm], table: str, metric: PaperMetric, training_set: str, by_tau: bool
) -> ArmColumn:
    def figures(arm: Arm) -> tuple[Value, ...]:
        found = figures_beside(study, arm, table, metric.name, training_set, by_tau)
        return tuple(reported(figure.value, figure.place) for figure in found)

    def first(arm: Arm) -> Value:
        return (*figures(arm), missing(Source.REPORTED))[0]

    key = "_".join(filter(None, ("reported", metric.name, training_set)))
    group = paper_group(study, arms, training_set)
    column = Column(key, metric.header, metric.digits, Better.NEITHER, metric.form, group)
    return ArmColumn(column, first, lambda arm: figures(arm)[1:], table)


def _minus_paper(study: Study, measured: ArmColumn, paper: ArmColumn) -> ArmColumn:
    """What was measured minus what is reported, of the arms with the paper's own policy and data."""

    def value(arm: Arm) -> Value:
        if not paper_setting(study, arm).own:
            return missing(Source.DERIVED, "the policy or the data are not the paper's own")
        return minus(measured.value(arm), paper.value(arm))

    def more(arm: Arm) -> tuple[Value, ...]:
        own = paper_setting(study, arm).own
        return tuple(minus(measured.value(arm), each) for each in paper.more(arm)) if own else ()

    shown = paper.column
    key, header = f"{measured.column.key}_minus_{shown.key}", "measured − paper"
    column = Column(key, header, shown.digits, Better.NEITHER, Form.DIFFERENCE, shown.group)
    return ArmColumn(column, value, more, paper.paper)


def minus(measured: Value, figure: Value) -> Value:
    """A measured value less a reported one, with the runs and the interval of the measured one."""
    if measured.value is None or figure.value is None:
        return missing(Source.DERIVED)
    ci = (measured.ci[0] - figure.value, measured.ci[1] - figure.value) if measured.ci else None
    return replace(measured, value=measured.value - figure.value, ci=ci, source=Source.DERIVED)
