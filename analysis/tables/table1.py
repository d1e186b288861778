"""Table 1: accuracy in and out of domain, training time and speed of the main methods."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy, decoding_name, out_of_domain
from analysis.study import Arm, Study
from analysis.table import Form
from analysis.tables.columns import ArmColumn, change_column, mean_column, renamed
from analysis.tables.paper_columns import PaperMetric, training_columns
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    benchmark, others = study.plan.report.in_domain, study.plan.report.out_of_domain
    columns = [
        mean_column(study, accuracy(benchmark, decoding), "In-domain accuracy (%)")
        for decoding in study.decodings(benchmark)
    ]
    for other in others:
        decoding = study.main_decoding(other)
        measure = accuracy(other, decoding)
        group = f"Out-of-domain (%), {decoding_name(decoding)}"
        columns.append(renamed(mean_column(study, measure, group), study.benchmark_label(other)))
    decoding = study.main_decoding(benchmark)
    average = out_of_domain(study)
    if average and len(others) > 1:
        columns.append(mean_column(study, average, columns[-1].column.group))
    columns.append(change_column(study, accuracy(benchmark, decoding), f"in, {decoding_name(decoding)}"))
    gain = None
    if average:
        gain = change_column(study, average, "out" if len(others) == 1 else "out, Avg")
        columns.append(gain)
    paper_gain = PaperMetric("out_of_domain_gain", "gain out", Form.DIFFERENCE, 2, gain)
    return (*columns, *training_columns(study, arms, "table1", paper_gain))


TABLE = ArmTable(
    name="table1",
    title="Accuracy and training time of the methods",
    paper_item="Table 1",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (interval_note(), speed_note(study), clock_note(study)),
)
