"""Figure 6: low policy lag: seconds of a step, validation by step and by training time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from analysis.figures.curves import draw_curve, track
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.style import PAGE_WIDTH, panel_title
from analysis.measures import WARM_UP_STEPS
from analysis.study import Arm, Study
from analysis.tables.spec import unique

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _arms(study: Study) -> list[Arm]:
    """The arms tagged "low_lag", else the baseline and FastRL; of those, what has finished runs."""
    arms = study.tagged("low_lag") or unique([study.baseline, study.main_arm("fastrl")])
    return [arm for arm in arms if study.trained & set(arm.runs.values())]


def _read(study: Study) -> Drawing | str:
    arms = _arms(study)
    if len({arm.method for arm in arms}) < 2:
        return "no finished run of both the baseline and FastRL"
    caption = (
        "(a) Seconds of a step without validation and checkpoints, the first step left out; validation "
        "accuracy (b) by step and (c) by training time so far. Means over seeds; bands are 95 % intervals "
        "where there are three seeds."
    )
    return Drawing(caption, (PAGE_WIDTH, 2.4), partial(_draw, study, arms))


def _draw(study: Study, arms: Sequence[Arm], figure: Figure) -> None:
    warm = study.steps[study.steps["step"] > WARM_UP_STEPS]
    validations = study.validations.assign(percent=100 * study.validations["accuracy"])
    panels = figure.subplots(1, 3)
    unit = study.clock.unit
    tracks = (
        (f"Time of a step ({unit})", "Step", track(warm, "step", "step", study.clock.key("step"))),
        ("Validation accuracy (%)", "Step", track(validations, "step", "step", "percent")),
        (
            "Validation accuracy (%)",
            f"Training time ({unit})",
            track(validations, "step", "clock", "percent"),
        ),
    )
    for axes, letter, (title, across, quantity) in zip(panels, "abc", tracks, strict=True):
        panel_title(axes, letter, title)
        axes.set_xlabel(across)
        for arm in arms:
            draw_curve(axes, arm, quantity.curve(arm))
    panels[0].set_ylim(bottom=0)
    panels[2].sharey(panels[1])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 8))


FIGURE = FigureSpec(
    name="figure6",
    title="Time of a step, and accuracy by step and by training time",
    paper_item="Figure 6",
    read=_read,
)
