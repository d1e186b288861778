"""Table 4: pass@k and avg@k out of domain, and in domain beside it."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy
from analysis.study import Arm, Study
from analysis.tables.columns import ArmColumn, difference_column, mean_column
from analysis.tables.spec import ArmTable, interval_note


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    columns = []
    for benchmark in (*study.plan.report.out_of_domain, study.plan.report.in_domain):
        decoding = study.main_decoding(benchmark)
        group = f"{study.benchmark_label(benchmark)} (%)"
        metrics = study.metrics(benchmark, decoding)
        shown = [metric for metric in metrics if metric.startswith("pass_at_") and metric != "pass_at_1"]
        shown = [*(metric for metric in metrics if metric.startswith("avg_at_")), *shown]
        columns += [mean_column(study, accuracy(benchmark, decoding, metric), group) for metric in shown]
        if shown:
            most = accuracy(benchmark, decoding, shown[-1])
            header = f"{most.header} − {study.baseline.label}"
            columns.append(difference_column(study, most, study.baseline, header, group))
    return columns


TABLE = ArmTable(
    name="table4",
    title="Several responses a question",
    paper_item="Table 4",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (
        interval_note(),
        "avg@k is the mean accuracy of k sampled responses, pass@k the unbiased estimate of the share of "
        "questions that at least one of k responses answers.",
    ),
)
