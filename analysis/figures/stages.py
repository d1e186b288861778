"""Where a step's time goes: seconds of each stage of the main methods, as shares of the baseline's step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from analysis.comparison import read
from analysis.figures.few_arms import few_arms, left_out
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.style import INK, PAGE_WIDTH
from analysis.measures import stage_time
from analysis.study import Arm, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STACKED = {
    "generation": (("gen",), "#0072B2"),
    "reward": (("reward",), "#CC79A7"),
    "advantages, selection": (("adv", "select"), "#1a1a1a"),
    "old log-probs": (("old",), "#56B4E9"),
    "reference log-probs": (("ref",), "#009E73"),
    "policy updates": (("update_actor",), "#E69F00"),
}
"""Name, stages and colour of each part of a bar, from Okabe and Ito's palette."""


def shares(study: Study) -> list[tuple[Arm, list[float]]]:
    """Each main arm with its parts in percent of its baseline's step; only arms on the same hardware."""
    whole = read(study, stage_time(study, ("step",), "step"))
    parts = [read(study, stage_time(study, stages, name)) for name, (stages, _) in STACKED.items()]
    found = []
    for arm in few_arms(study, study.tagged("main")):
        base = whole.mean(study.baseline_of(arm)).value
        speed = whole.speed(arm, study.baseline_of(arm)).value  # None on other hardware
        values = [part.mean(arm).value for part in parts]
        if base and speed and None not in values:
            found.append((arm, [100 * (value or 0.0) / base for value in values]))
    return found


def _read(study: Study) -> Drawing | str:
    rows = shares(study)
    if not rows:
        return "no main method with finished runs on the baseline's hardware"
    caption = (
        f"Mean seconds of each stage of a step, in percent of {study.baseline.label}'s step; the first step "
        "of a run, validation and checkpoints left out."
        f"{left_out(study, study.tagged('main'))}"
    )
    across = f"Share of {study.baseline.label}'s step (%, {study.clock.unit})"
    return Drawing(caption, (PAGE_WIDTH, 2.6), partial(_draw, across, rows))


def _draw(across: str, rows: list[tuple[Arm, list[float]]], figure: Figure) -> None:
    axes = figure.add_subplot()
    for column, (name, (_, own)) in enumerate(STACKED.items()):
        lefts = [sum(values[:column]) for _, values in rows]
        widths = [values[column] for _, values in rows]
        axes.barh(range(len(rows)), widths, left=lefts, height=0.68, color=own, label=name, linewidth=0)
    for row, (_, values) in enumerate(rows):
        axes.text(sum(values) + 1, row, f"{sum(values):.0f} %", va="center", color=INK, fontsize=7)
    axes.set_yticks(range(len(rows)), [arm.label for arm, _ in rows])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, max(sum(values) for _, values in rows) * 1.08)
    axes.set_xlabel(across)
    figure.legend(loc="outside upper center", ncols=len(STACKED), handlelength=1.0)


FIGURE = FigureSpec(name="stages", title="Where a step's time goes", paper_item="", read=_read)
