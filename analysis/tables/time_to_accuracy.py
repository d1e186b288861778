"""Time to a given accuracy, and accuracy at equal steps and at equal time, of the main methods."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison import shortest_training
from analysis.measures import accuracy_at_time, last_validation, time_to_accuracy
from analysis.study import Arm, Study
from analysis.tables.columns import ArmColumn, difference_column, mean_column, speed_column
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    to_target = time_to_accuracy(study, study.plan.report.target_accuracy)
    at_steps, at_time = last_validation(study), accuracy_at_time(study, shortest_training(study, arms))
    baseline = study.baseline
    return (
        mean_column(study, to_target, "Time"),
        speed_column(study, to_target, group="Time"),
        mean_column(study, at_steps, "Validation accuracy (%)"),
        difference_column(study, at_steps, baseline, "change", "Validation accuracy (%)"),
        mean_column(study, at_time, "Validation accuracy (%)"),
        difference_column(study, at_time, baseline, "change", "Validation accuracy (%)"),
    )


TABLE = ArmTable(
    name="time_to_accuracy",
    title="Time to a given accuracy, and accuracy at equal time",
    paper_item="",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (
        interval_note(),
        "Validation accuracy is joined by straight lines between validations. Equal time is that of the "
        f"shortest run; changes are paired differences from {study.baseline.label}, in points.",
        speed_note(study),
        clock_note(study),
    ),
)
