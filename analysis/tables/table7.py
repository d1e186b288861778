"""Table 7: FastRL's threshold τ."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import accuracy, decoding_name, mean_of_steps
from analysis.study import Arm, Study
from analysis.tables.columns import ArmColumn, mean_column, renamed
from analysis.tables.paper_columns import training_columns
from analysis.tables.spec import ArmTable, clock_note, interval_note, speed_note


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    benchmark, others = study.plan.report.in_domain, study.plan.report.out_of_domain
    columns = [mean_column(study, mean_of_steps("select/kept_per_question_mean", "Kept", 2), "Per question")]
    columns += [
        mean_column(study, accuracy(benchmark, decoding), "In-domain accuracy (%)")
        for decoding in study.decodings(benchmark)
    ]
    for other in others:
        decoding = study.main_decoding(other)
        column = mean_column(
            study, accuracy(other, decoding), f"Out-of-domain (%), {decoding_name(decoding)}"
        )
        columns.append(renamed(column, study.benchmark_label(other)))
    return (*columns, *training_columns(study, arms, "table7", by_tau=True))


def _row_label(arm: Arm) -> str:
    return arm.label if "τ" in arm.label or arm.tau is None else f"{arm.label} τ={arm.tau:g}"


TABLE = ArmTable(
    name="table7",
    title="The threshold τ",
    paper_item="Table 7",
    corner="Threshold",
    arms=lambda study: study.tau_arms,
    columns=_columns,
    notes=lambda study: (interval_note(), speed_note(study), clock_note(study)),
    row_label=_row_label,
)
