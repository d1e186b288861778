"""Policy lag: many updates a step and higher learning rates, for GRPO, FastRL and their controls."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy, last_validation, mean_of_steps
from analysis.study import Arm, Study
from analysis.tables.columns import ArmColumn, mean_column, renamed, setting_column
from analysis.tables.spec import ArmTable, interval_note


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    benchmark = study.plan.report.in_domain
    return (
        setting_column(study, "training.learning_rate", "Learning rate"),
        setting_column(study, "training.updates", "set", "Updates a step"),
        mean_column(study, mean_of_steps("actor/updates", "made", 1), "Updates a step"),
        mean_column(study, mean_of_steps("select/kept_per_question_mean", "Kept", 2), "Per question"),
        *(
            mean_column(study, accuracy(benchmark, decoding), "In-domain accuracy (%)")
            for decoding in study.decodings(benchmark)
        ),
        renamed(mean_column(study, last_validation(study), "Validation (%)"), "last"),
    )


TABLE = ArmTable(
    name="lag",
    title="Policy lag",
    paper_item="",
    corner="Method",
    arms=lambda study: study.tagged("lag"),
    columns=_columns,
    notes=lambda study: (interval_note(),),
)
