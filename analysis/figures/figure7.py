"""Figure 7: tokens, policy entropy and validation accuracy by time, the main methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from analysis.figures.curves import draw_curve, track
from analysis.figures.few_arms import few_arms, left_out
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.style import MUTED, PAGE_WIDTH, panel_title
from analysis.study import Arm, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _arms(study: Study) -> list[Arm]:
    return [arm for arm in few_arms(study, study.tagged("main")) if study.trained & set(arm.runs.values())]


def _read(study: Study) -> Drawing | str:
    arms = _arms(study)
    if not arms:
        return "no finished run of a main method"
    caption = (
        "(a) Tokens generated, trained on and scored so far, (b) policy entropy, (c) validation accuracy; "
        f"the dotted line is the target of {100 * study.plan.report.target_accuracy:g} %. Means over seeds "
        "at equal steps; bands are 95 % intervals where there are three seeds."
        f"{left_out(study, study.tagged('main'))}"
    )
    return Drawing(caption, (PAGE_WIDTH, 2.5), partial(_draw, study, arms))


def _draw(study: Study, arms: Sequence[Arm], figure: Figure) -> None:
    steps = study.steps.assign(
        total_tokens=study.steps.groupby("run_id")["tokens/total"].cumsum() / 1e6,
    )
    validations = study.validations.assign(percent=100 * study.validations["accuracy"])
    panels = figure.subplots(1, 3)
    titles = ("Tokens processed (millions)", "Policy entropy (nats)", "Validation accuracy (%)")
    for axes, letter, title in zip(panels, "abc", titles, strict=True):
        panel_title(axes, letter, title)
        axes.set_xlabel(f"Training time ({study.clock.unit})")
    tracks = (
        track(steps, "step", "clock/total", "total_tokens"),
        track(steps, "step", "clock/total", "actor/entropy"),
        track(validations, "step", "clock", "percent"),
    )
    for axes, quantity in zip(panels, tracks, strict=True):
        for arm in arms:
            draw_curve(axes, arm, quantity.curve(arm))
    target = 100 * study.plan.report.target_accuracy
    panels[2].axhline(target, color=MUTED, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    panels[0].set_ylim(bottom=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 8))


FIGURE = FigureSpec(
    name="figure7", title="Tokens, entropy and accuracy by training time", paper_item="Figure 7", read=_read
)
