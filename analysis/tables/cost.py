"""What training costs: device hours, seconds of first, later and side work, and tokens."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.measures import WARM_UP_STEPS, device_hours, first_step_time, stage_time, total_of_steps
from analysis.study import Arm, Study
from analysis.tables.columns import ArmColumn, mean_column, speed_column
from analysis.tables.spec import ArmTable, clock_note, interval_note

_TOKENS = {"generated": "generated", "trained": "trained on", "total": "in all"}


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    hours, unit = device_hours(study), study.clock.unit
    side = (("validation", "validation"), ("save_checkpoint", "checkpoints"))
    return (
        mean_column(study, hours, "Training"),
        speed_column(study, hours, "Saved", group="Training"),
        mean_column(study, first_step_time(study), f"{unit} a step"),
        mean_column(study, stage_time(study, ("step",), "later"), f"{unit} a step"),
        *(
            mean_column(
                study,
                total_of_steps(study, study.clock.key(stage), name, 1, 1.0, timed=True),
                f"Besides ({unit})",
            )
            for stage, name in side
        ),
        *(
            mean_column(study, total_of_steps(study, f"tokens/{part}", name, 2, 1e-6), "Tokens (millions)")
            for part, name in _TOKENS.items()
        ),
    )


TABLE = ArmTable(
    name="cost",
    title="What training costs",
    paper_item="",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (
        interval_note(),
        clock_note(study),
        f"First: the first {WARM_UP_STEPS} of a run's steps, which fills caches and compiles; device hours "
        "count it. GPU-hours are hours of wall-clock time times GPUs. Tokens in all: generated, trained on, "
        "and scored under the old and the reference policy.",
    ),
)
