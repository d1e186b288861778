"""Figure 1: accuracy against speed, every method of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.comparison import read
from analysis.figures.few_arms import few_arms
from analysis.figures.labels import Label, place_labels
from analysis.figures.spec import FigureSpec
from analysis.figures.style import MARKERS, MUTED, PAGE_WIDTH, colour, marker_group, text_colour
from analysis.measures import accuracy, decoding_name, training_time
from analysis.study import Arm, Study
from analysis.values import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUPS = {"main": "methods", "ablation": "ablations", "pruning": "pruning rules", "tau": "thresholds"}
_MOST_NAMES = 40
"""Points that can all be named; of more, only the main methods are."""

_MARKER, _SMALL_MARKER = 5.5, 4.0


def points(study: Study) -> list[tuple[Arm, Value, Value]]:
    """Each arm with its speed and its accuracy (percent), where it has both."""
    times = read(study, training_time(study))
    benchmark = study.plan.report.in_domain
    accuracies = read(study, accuracy(benchmark, study.main_decoding(benchmark)))
    found = [(arm, times.speed(arm, study.baseline), accuracies.mean(arm)) for arm in study.tagged(*_GROUPS)]
    return [(arm, speed, score) for arm, speed, score in found if None not in (speed.value, score.value)]


def _lacks(study: Study) -> str:
    return "" if points(study) else "no arm has both a speed and an accuracy"


def _draw(study: Study, figure: Figure) -> None:
    axes = figure.add_subplot()
    labels, bars = [], []
    shown = [arm for arm, _, _ in points(study)]
    named = {
        arm.id for arm in (shown if len(shown) <= _MOST_NAMES else few_arms(study, study.tagged("main")))
    }
    for arm, speed, score in points(study):
        x, y = speed.value or 0.0, score.value or 0.0
        main = "main" in arm.groups
        own, size = colour(arm.method), _MARKER if main else _SMALL_MARKER
        across = [(speed.ci[0], y, speed.ci[1], y)] if speed.ci else []
        along = [(x, score.ci[0], x, score.ci[1])] if score.ci else []
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


FIGURE = FigureSpec(
    name="figure1",
    title="Accuracy against speed",
    paper_item="Figure 1",
    size=(PAGE_WIDTH, 3.9),
    caption=lambda study: (
        "Means over seeds with 95 % intervals where there are three seeds. Filled: the main methods; hollow: "
        "ablations, pruning rules and thresholds."
    ),
    lacks=_lacks,
    draw=_draw,
)
