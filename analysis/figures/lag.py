"""The lag panel: accuracy by learning rate at few and at many updates a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from analysis.comparison import Readings, read
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.spread import SPREAD_NOTE, spread
from analysis.figures.style import PAGE_WIDTH, colour, panel_title
from analysis.lag_arms import LagArm, lag_arms
from analysis.measures import accuracy
from analysis.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Series:
    """A line of a panel: its arms by learning rate. control: its number of updates is not the panel's."""

    label: str
    arms: tuple[LagArm, ...]
    control: bool


def panels(arms: tuple[LagArm, ...]) -> dict[int, tuple[Series, ...]]:
    """The lines of each panel, by its number of updates.

    A number of updates at which several kinds of arms ran has a panel. The others are controls, and stand in
    the panel with the most updates.
    """
    kinds = {(each.name, each.fixed, each.updates) for each in arms}
    count = Counter(updates for _, _, updates in kinds)
    shown = sorted(updates for updates, number in count.items() if number > 1) or sorted(count)[-1:]
    both_modes = {name for name, fixed, _ in kinds if (name, not fixed) in {kind[:2] for kind in kinds}}
    found: dict[int, list[Series]] = {updates: [] for updates in shown}
    for name, fixed, updates in dict.fromkeys((each.name, each.fixed, each.updates) for each in arms):
        members = [each for each in arms if (each.name, each.fixed, each.updates) == (name, fixed, updates)]
        mode = (", fixed updates" if fixed else ", mini-batches") if name in both_modes else ""
        control = updates not in shown
        label = f"{name}{mode}" + (f", {updates} updates" if control else "")
        series = Series(label, tuple(sorted(members, key=lambda each: each.learning_rate)), control)
        found[updates if not control else shown[-1]].append(series)
    return {updates: tuple(lines) for updates, lines in found.items()}


def _read(study: Study) -> Drawing | str:
    benchmark = study.plan.report.in_domain
    readings = read(study, accuracy(benchmark, study.main_decoding(benchmark)))
    arms = lag_arms(study)
    if not any(readings.by_seed(each.arm) for each in arms):
        return "no arm tagged lag has an accuracy"
    caption = (
        f"Means over seeds; {SPREAD_NOTE}. With mini-batches, pruning lowers the number "
        "of updates a step; the squares are a control that is given about as few."
    )
    return Drawing(caption, (PAGE_WIDTH, 2.6), partial(_draw, readings, panels(arms)))


def _draw(readings: Readings, by_updates: Mapping[int, tuple[Series, ...]], figure: Figure) -> None:
    shown = figure.subplots(1, len(by_updates), sharey=True, squeeze=False)[0]
    for axes, letter, (updates, lines) in zip(shown, "abcdefgh", by_updates.items(), strict=False):
        panel_title(axes, letter, f"{updates} updates a step")
        for series in lines:
            _draw_series(axes, readings, series)
        rates = sorted({each.learning_rate for series in lines for each in series.arms})
        axes.set_xscale("log")
        axes.set_xticks(rates, [f"{rate:.0e}".replace("e-0", "e−") for rate in rates])
        axes.minorticks_off()
        axes.set_xlabel("Learning rate")
    shown[0].set_ylabel(f"In-domain accuracy (%), {readings.measure.header}")
    handles = {
        label: handle
        for axes in shown
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))


def _draw_series(axes: Axes, readings: Readings, series: Series) -> None:
    """Means over seeds by learning rate, with their interval, or else the range of the seeds."""
    own = colour(series.arms[0].arm.method)
    points = [(each, readings.mean(each.arm)) for each in series.arms]
    points = [(each, value) for each, value in points if value.value is not None]
    dashed = series.control or not series.arms[0].fixed
    axes.plot(
        [each.learning_rate for each, _ in points],
        [value.value or 0.0 for _, value in points],
        marker="s" if series.control else "o",
        color=own,
        linestyle=(0, (3, 1.5)) if dashed else "-",
        markerfacecolor="white" if dashed else own,
        label=series.label,
    )
    for each, value in points:
        ends = spread(value, readings.scaled(each.arm))
        if ends:
            axes.plot([each.learning_rate] * 2, ends, color=own, linewidth=0.9, alpha=0.5)


FIGURE = FigureSpec(name="lag", title="Policy lag: accuracy by learning rate", paper_item="", read=_read)
