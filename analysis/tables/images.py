"""What looking adds: accuracy with the questions' own images, and with those of other questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.measures import accuracy, decoding_name
from analysis.study import Arm, Study
from analysis.table import Better
from analysis.tables.columns import ArmColumn, mean_column, renamed
from analysis.tables.spec import ArmTable, interval_note

SHUFFLED = "_shuffled"
"""Ends the name of the benchmark that asks another's questions with each other's images."""


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    own = study.plan.report.in_domain
    shuffled = f"{own}{SHUFFLED}"
    common = [name for name in study.decodings(own) if name in study.decodings(shuffled)]
    columns = []
    for decoding in common:
        group = f"Accuracy (%), {decoding_name(decoding)}"
        right = accuracy(own, decoding)
        wrong = replace(accuracy(shuffled, decoding), better=Better.NEITHER)  # no merit either way
        for measure, header in ((right, "own images"), (wrong, "images of others")):
            columns.append(renamed(mean_column(study, measure, group), header))
    return columns


TABLE = ArmTable(
    name="images",
    title="Accuracy with and without the right image",
    paper_item="",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (
        "Images of others: each question is shown with the image of another one that asks the same and has "
        "another answer.",
        interval_note(),
    ),
)
