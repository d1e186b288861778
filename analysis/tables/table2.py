"""Table 2: what each half of FastRL is worth: without MDAP (its rollout schedule replayed), without ARS."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import mean_of_steps, out_of_domain
from analysis.study import Arm, Study
from analysis.table import Form
from analysis.tables.columns import ArmColumn, accuracy_columns, difference_column, mean_column
from analysis.tables.paper_columns import PaperMetric, training_columns
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note, unique


def _arms(study: Study) -> Sequence[Arm]:
    parts = study.tagged("ablation")
    return unique([study.baseline, study.main_arm("fastrl"), *parts]) if parts else ()


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    full = study.main_arm("fastrl") or arms[0]
    in_domain = accuracy_columns(study, study.plan.report.in_domain, full)
    average = out_of_domain(study)
    change = None
    if average:
        change = difference_column(study, average, full, "out of domain", in_domain[-1].column.group)
    paper_change = PaperMetric("out_of_domain_change", "change out", Form.DIFFERENCE, 2, change)
    return (
        *in_domain,
        *([change] if change else []),
        mean_column(study, mean_of_steps("rollout/n", "generated", 2), "Per question"),
        mean_column(study, mean_of_steps("select/kept_per_question_mean", "kept", 2), "Per question"),
        *training_columns(study, arms, "table2", paper_change),
    )


TABLE = ArmTable(
    name="table2",
    title="Ablation of FastRL",
    paper_item="Table 2",
    corner="Method",
    arms=_arms,
    columns=_columns,
    notes=lambda study: (interval_note(), speed_note(study), clock_note(study)),
)
