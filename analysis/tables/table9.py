"""Table 9: continuous rewards, as grounding has them: FastRL against the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy, decoding_name, last_step, mean_of_steps, metric_name
from analysis.study import Arm, Study
from analysis.table import Better
from analysis.tables.columns import ArmColumn, change_column, mean_column, renamed
from analysis.tables.paper_columns import training_columns
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note, unique


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    benchmark = study.plan.report.in_domain
    decoding = study.main_decoding(benchmark)
    group = f"{study.benchmark_label(benchmark)}, {decoding_name(decoding)}"
    scores = [name for name in study.metrics(benchmark, decoding) if "_at_" not in name]  # an IoU, say
    columns = [
        renamed(
            mean_column(study, accuracy(benchmark, decoding, name), f"{group} (%)"),
            metric_name(name).replace("_", " "),
        )
        for name in scores
    ]
    return (
        *columns,
        change_column(study, accuracy(benchmark, decoding), "accuracy"),
        mean_column(study, last_step("reward/mean", "at the end", 3, Better.HIGHER), "Reward"),
        mean_column(study, mean_of_steps("select/kept_per_question_mean", "Kept", 2), "Per question"),
        *training_columns(study, arms, "table9"),
    )


TABLE = ArmTable(
    name="table9",
    title="Continuous rewards",
    paper_item="Table 9",
    corner="Method",
    arms=lambda study: unique([study.baseline, study.main_arm("fastrl")]) if study.main_arm("fastrl") else (),
    columns=_columns,
    notes=lambda study: (interval_note(), speed_note(study), clock_note(study)),
)
