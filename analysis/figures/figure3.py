"""Figure 3: how FastRL adapts: rollouts and kept trajectories by epoch, and what its threshold does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from analysis.comparison import Readings, read
from analysis.figures.curves import draw_curve, track
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.spread import SPREAD_NOTE, spread
from analysis.figures.style import MUTED, PAGE_WIDTH, colour, panel_title, ticks_at
from analysis.measures import accuracy, decoding_name, training_time
from analysis.study import Arm, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _arms(study: Study) -> list[Arm]:
    """FastRL and CPPO, of those that have finished runs."""
    arms = (study.main_arm("fastrl"), study.main_arm("cppo"))
    return [arm for arm in arms if arm is not None and study.trained & set(arm.runs.values())]


def _read(study: Study) -> Drawing | str:
    arms = _arms(study)
    if not any(arm.method == "fastrl" for arm in arms):
        return "no finished run of FastRL"
    caption = (
        "(a) Rollouts generated a question and (b) trajectories kept a question, by epoch; (c) accuracy and "
        f"speed relative to {study.baseline.label} by threshold. Means over seeds; {SPREAD_NOTE}; "
        "bands are intervals alone."
    )
    return Drawing(caption, (PAGE_WIDTH, 2.3), partial(_draw, study, arms))


def _draw(study: Study, arms: Sequence[Arm], figure: Figure) -> None:
    grid = figure.add_gridspec(2, 3)
    rollouts, kept = (figure.add_subplot(grid[:, column]) for column in (0, 1))
    shown = study.steps["run_id"].isin([run_id for arm in arms for run_id in arm.runs.values()])
    steps = study.steps[shown].assign(shown_epoch=study.steps["epoch"] + 1)
    for axes, column in ((rollouts, "rollout/n"), (kept, "select/kept_per_question_mean")):
        by_epoch = track(steps, "shown_epoch", "shown_epoch", column)
        for arm in arms:
            draw_curve(axes, arm, by_epoch.curve(arm), marker="o")
    epochs = sorted(set(steps["shown_epoch"]))
    for axes, letter, title in ((rollouts, "a", "Rollouts a question"), (kept, "b", "Kept a question")):
        panel_title(axes, letter, title)
        axes.set_xlabel("Epoch")
        axes.set_ylim(0, float(steps["rollout/n"].max()) * 1.08)
        ticks_at(axes, epochs if len(epochs) <= 10 else epochs[:: len(epochs) // 5])
    rollouts.legend(loc="lower left")
    _draw_thresholds(study, figure.add_subplot(grid[0, 2]), figure.add_subplot(grid[1, 2]))


def _draw_thresholds(study: Study, upper: Axes, lower: Axes) -> None:
    """Accuracy above, speed below, by τ."""
    benchmark = study.plan.report.in_domain
    decoding = study.main_decoding(benchmark)
    panel_title(upper, "c", "Threshold τ")
    accuracies, times = read(study, accuracy(benchmark, decoding)), read(study, training_time(study))
    _by_threshold(study, upper, accuracies, speed=False)
    _by_threshold(study, lower, times, speed=True)
    upper.set_ylabel(f"Accuracy (%),\n{decoding_name(decoding)}")
    lower.set_ylabel("Speed (×)")
    lower.set_xlabel("τ")
    upper.tick_params(labelbottom=False)


def _by_threshold(study: Study, axes: Axes, readings: Readings, speed: bool) -> None:
    shown = []
    task = (study.baseline.model, study.baseline.dataset)
    for arm in study.tau_arms:
        if (arm.model, arm.dataset) != task:
            continue
        value = readings.speed(arm, study.baseline) if speed else readings.mean(arm)
        if value.value is not None and arm.tau is not None:
            seeds = readings.speeds(arm, study.baseline) if speed else readings.scaled(arm)
            shown.append((arm.tau, value.value, spread(value, seeds)))
    ink = colour("fastrl")
    axes.plot([tau for tau, _, _ in shown], [value for _, value, _ in shown], "o-", color=ink)
    for tau, _, ends in shown:
        if ends:
            axes.plot([tau, tau], ends, color=ink, linewidth=0.9, alpha=0.5)
    axes.margins(y=0.15)  # room for whole markers in a low panel
    if not shown:
        axes.text(0.5, 0.5, "not swept", ha="center", va="center", transform=axes.transAxes, color=MUTED)
        return
    ticks_at(axes, [tau for tau, _, _ in shown])


FIGURE = FigureSpec(
    name="figure3",
    title="Adaptive rollouts, kept trajectories and the threshold",
    paper_item="Figure 3",
    read=_read,
)
