"""Performance profiles: how many of a method's runs and benchmarks lie above each score, and their mean."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from analysis.aggregates import (
    Array,
    interquartile_estimate,
    performance_profile,
    score_matrices,
    shares_above,
)
from analysis.figures.few_arms import few_arms, left_out
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.style import MUTED, PAGE_WIDTH, colour, line_style, panel_title
from analysis.statistics import LEAST_SEEDS
from analysis.study import Arm, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 201


def _scored(study: Study) -> list[tuple[Arm, Array]]:
    """The main arms with their (runs, benchmarks) changes from the baseline's means, in points."""
    arms = few_arms(study, study.tagged("main"))
    found = score_matrices(study, arms)
    return [(arm, 100 * found[arm.id][0]) for arm in arms if found[arm.id][0].size]


def _read(study: Study) -> Drawing | str:
    scored = _scored(study)
    if not scored:
        return "no run of a main method with all benchmarks"
    caption = (
        f"Scores are accuracies less {study.baseline.label}'s mean on the same benchmark, over all runs and "
        "benchmarks. (a) Share of the scores above a value; (b) their interquartile mean. Bands (for "
        f"{study.baseline.label} and FastRL) and bars are 95 % bootstrap intervals over runs where there are "
        f"three seeds.{left_out(study, study.tagged('main'))}"
    )
    return Drawing(caption, (PAGE_WIDTH, 2.6), partial(_draw, study.baseline, scored))


def _draw(baseline: Arm, scored: list[tuple[Arm, Array]], figure: Figure) -> None:
    profile, means = figure.subplots(1, 2, width_ratios=(1.6, 1))
    everything = np.concatenate([scores.ravel() for _, scores in scored])
    margin = max(0.5, 0.05 * float(np.ptp(everything)))
    thresholds = np.linspace(everything.min() - margin, everything.max() + margin, _POINTS)
    panel_title(profile, "a", "Share of runs and benchmarks above")
    profile.axvline(0, color=MUTED, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    for arm, scores in scored:
        style = line_style(arm)
        profile.plot(thresholds, shares_above(scores, thresholds), drawstyle="steps-post", **style)
        if len(scores) >= LEAST_SEEDS and arm.method in ("fastrl", baseline.method):
            _, low, high = performance_profile(scores, thresholds)
            profile.fill_between(
                thresholds, low, high, step="post", color=style["color"], alpha=0.12, linewidth=0
            )
    profile.set_ylim(-0.02, 1.04)
    profile.set_xlim(thresholds[0], thresholds[-1])
    profile.set_xlabel(f"Accuracy less {baseline.label}'s mean on the benchmark (points)")
    _draw_means(means, scored)
    handles, labels = profile.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 8))


def _draw_means(axes: Axes, scored: list[tuple[Arm, Array]]) -> None:
    panel_title(axes, "b", "Interquartile mean")
    for row, (arm, scores) in enumerate(scored):
        estimate = interquartile_estimate(scores)
        own = colour(arm.method)
        if estimate.ci:
            axes.plot(estimate.ci, [row, row], color=own, linewidth=1.4)
        axes.plot(estimate.value, row, "o", color=own)
    axes.set_yticks(range(len(scored)), [arm.label for arm, _ in scored])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.axvline(0, color=MUTED, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xlabel("Points")


FIGURE = FigureSpec(
    name="profiles", title="Performance profiles across benchmarks", paper_item="", read=_read
)
