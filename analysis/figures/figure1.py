"""Figure 1: accuracy against speed, every method of the study."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from analysis.comparison import read
from analysis.figures.few_arms import few_arms
from analysis.figures.labels import Label, place_labels
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.spread import SPREAD_NOTE, spread
from analysis.figures.style import MARKERS, MUTED, PAGE_WIDTH, colour, marker_group, text_colour
from analysis.measures import accuracy, decoding_name, training_time
from analysis.study import Arm, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUPS = {"main": "methods", "ablation": "ablations", "pruning": "pruning rules", "tau": "thresholds"}
_MOST_NAMES = 40
"""Points that can all be named; of more, only the main methods are."""

_MARKER, _SMALL_MARKER = 5.5, 4.0


@dataclass(frozen=True)
class Point:
    """An arm, its speed, and its accuracy in percent, each with the ends of its bar, None for no bar."""

    arm: Arm
    x: float
    y: float
    across: tuple[float, float] | None
    along: tuple[float, float] | None


def points(study: Study) -> list[Point]:
    """The points of the arms that have both a speed and an accuracy."""
    times = read(study, training_time(study))
    benchmark = study.plan.report.in_domain
    accuracies = read(study, accuracy(benchmark, study.main_decoding(benchmark)))
    found = []
    for arm in study.tagged(*_GROUPS):
        speed, score = times.speed(arm, study.baseline), accuracies.mean(arm)
        if speed.value is not None and score.value is not None:
            across = spread(speed, times.speeds(arm, study.baseline))
            found.append(Point(arm, speed.value, score.value, across, spread(score, accuracies.scaled(arm))))
    return found


def _read(study: Study) -> Drawing | str:
    found = points(study)
    if not found:
        return "no arm has both a speed and an accuracy"
    caption = (
        f"Means over seeds; {SPREAD_NOTE}. Filled: the main methods; hollow: ablations, pruning rules and "
        "thresholds."
    )
    return Drawing(caption, (PAGE_WIDTH, 3.9), partial(_draw, study, found))


def _draw(study: Study, found: list[Point], figure: Figure) -> None:
    axes = figure.add_subplot()
    labels, bars = [], []
    shown = [point.arm for point in found]
    named = {
        arm.id for arm in (shown if len(shown) <= _MOST_NAMES else few_arms(study, study.tagged("main")))
    }
    for point in found:
        arm, x, y = point.arm, point.x, point.y
        main = "main" in arm.groups
        own, size = colour(arm.method), _MARKER if main else _SMALL_MARKER
        across = [(point.across[0], y, point.across[1], y)] if point.across else []
        along = [(x, point.along[0], x, point.along[1])] if point.along else []
        for x0, y0, x1, y1 in across + along:
            axes.plot([x0, x1], [y0, y1], color=own, linewidth=0.9, alpha=0.5 if main else 0.25, zorder=2)
        axes.plot(
            x,
            y,
            MARKERS[marker_group(arm)],
            markersize=size,
            color=own if main else "white",
            markeredgecolor=own,
            markeredgewidth=1.0,
            zorder=3,
        )
        bars += across + along
        if arm.id in named:
            labels.append(Label(arm.label, x, y, text_colour(arm.method), size / 2 + 0.5))
    axes.axvline(1, color=MUTED, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    axes.margins(0.09)
    axes.set_xlabel(f"Speed of training relative to {study.baseline.label} (×, {study.clock.unit})")
    decoding = study.main_decoding(study.plan.report.in_domain)
    axes.set_ylabel(f"In-domain accuracy (%), {decoding_name(decoding)}")
    _draw_legend(figure, shown)
    place_labels(axes, labels, bars, 7.0)


def _draw_legend(figure: Figure, arms: list[Arm]) -> None:
    """What the markers stand for, where there are several."""
    from matplotlib.lines import Line2D

    shown = {
        group: name for group, name in _GROUPS.items() if any(marker_group(arm) == group for arm in arms)
    }
    if len(shown) < 2:
        return
    handles = [
        Line2D(
            [],
            [],
            marker=MARKERS[group],
            color=MUTED,
            markerfacecolor=MUTED if group == "main" else "white",
            linestyle="none",
            label=name,
        )
        for group, name in shown.items()
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), handlelength=1.0)


FIGURE = FigureSpec(name="figure1", title="Accuracy against speed", paper_item="Figure 1", read=_read)
