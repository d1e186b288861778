"""Table 3: a text model: accuracy in domain and on AIME, hours and speed."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy, decoding_name, in_hours, out_of_domain, training_time
from analysis.study import Arm, Study
from analysis.table import Form
from analysis.tables.columns import ArmColumn, mean_column, renamed, speed_column
from analysis.tables.paper_columns import PaperMetric, paper_columns
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    benchmark, others = study.plan.report.in_domain, study.plan.report.out_of_domain
    decoding = study.main_decoding(benchmark)
    in_domain = renamed(
        mean_column(study, accuracy(benchmark, decoding), f"Accuracy (%), {decoding_name(decoding)}"),
        study.benchmark_label(benchmark),
    )
    columns = [in_domain]
    for other in others:
        measure = accuracy(other, study.main_decoding(other))
        column = mean_column(study, measure, in_domain.column.group)
        columns.append(renamed(column, study.benchmark_label(other)))
    average = out_of_domain(study)
    time = training_time(study)
    hours, speed = mean_column(study, in_hours(time), "Training"), speed_column(study, time, group="Training")
    wall = hours if study.plan.clock == "wall" else None  # hours on a CPU clock are no hours of the paper's
    paper = (
        PaperMetric("in_domain", "in-domain (%)", Form.NUMBER, 2, in_domain),
        PaperMetric("aime", "AIME (%)", Form.NUMBER, 2, mean_column(study, average) if average else None),
        PaperMetric("training_time", "Time (h)", Form.NUMBER, 2, wall),
        PaperMetric("speed", "Speed", Form.RATIO, 2, speed),
    )
    return (*columns, hours, speed, *paper_columns(study, arms, "table3", paper))


TABLE = ArmTable(
    name="table3",
    title="A text model: accuracy, hours and speed",
    paper_item="Table 3",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (interval_note(), speed_note(study), clock_note(study)),
)
