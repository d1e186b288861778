"""Table 5: pruning rules against FastRL's, among them rules that keep as few trajectories."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import last_step, mean_of_steps, out_of_domain
from analysis.study import Arm, Study
from analysis.table import Form
from analysis.tables.columns import ArmColumn, accuracy_columns, mean_column
from analysis.tables.paper_columns import PaperMetric, training_columns
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note, unique


def _arms(study: Study) -> Sequence[Arm]:
    rules = study.tagged("pruning")
    main = (study.baseline, study.main_arm("fastrl"), study.main_arm("cppo"))
    return unique([*main, *rules]) if rules else ()


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    full = study.main_arm("fastrl") or arms[0]
    average = out_of_domain(study)
    others = mean_column(study, average, "Out-of-domain (%)") if average else None
    paper_others = PaperMetric("out_of_domain", "Avg out (%)", Form.NUMBER, 2, others)
    return (
        mean_column(study, mean_of_steps("select/kept_per_question_mean", "Kept", 2), "Per question"),
        *accuracy_columns(study, study.plan.report.in_domain, full),
        *([others] if others else []),
        mean_column(study, last_step("actor/entropy", "Entropy", 3), "At the end"),
        *training_columns(study, arms, "table5", paper_others),
    )


TABLE = ArmTable(
    name="table5",
    title="Pruning rules",
    paper_item="Table 5",
    corner="Rule",
    arms=_arms,
    columns=_columns,
    notes=lambda study: (interval_note(), speed_note(study), clock_note(study)),
)
