"""Table 4: pass@k and avg@k out of domain, and in domain beside it."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy, out_of_domain
from analysis.study import Arm, Study
from analysis.table import Form
from analysis.tables.columns import ArmColumn, change_column, difference_column, mean_column
from analysis.tables.paper_columns import PaperMetric, paper_columns
from analysis.tables.spec import ArmTable, interval_note

_PAPER_METRIC = "avg_at_16"


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
    return (*columns, *_average_columns(study, arms))


def _average_columns(study: Study, arms: Sequence[Arm]) -> tuple[ArmColumn, ...]:
    """avg@k over the out-of-domain benchmarks together, its change, and the change that the paper reports."""
    others = study.plan.report.out_of_domain
    metrics = study.metrics(others[0], study.main_decoding(others[0])) if others else ()
    name = next((metric for metric in metrics if metric.startswith("avg_at_")), "")
    measure = out_of_domain(study, name) if name else None
    columns: list[ArmColumn] = []
    if measure:
        group = "Out-of-domain, mean (%)"
        change = change_column(study, measure, f"{measure.header} − {study.baseline.label}", group)
        columns = [*([mean_column(study, measure, group)] if len(others) > 1 else []), change]
    measured = columns[-1] if name == _PAPER_METRIC else None
    paper = PaperMetric(f"{_PAPER_METRIC}_gain", "avg@16 gain", Form.DIFFERENCE, 2, measured)
    return (*columns, *paper_columns(study, arms, "table4", (paper,)))


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
