"""Curves over training: an arm's mean over seeds at each step or epoch, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.figures.style import line_style
from analysis.statistics import mean_of_columns
from analysis.study import Arm

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


@dataclass(frozen=True)
class Curve:
    """Points of a curve: x and y are means over seeds; low and high bound y, NaN without an interval."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class Track:
    """Two quantities of every run. x, y: a row for each step or epoch, a column for each run."""

    x: DataFrame
    y: DataFrame

    def curve(self, arm: Arm) -> Curve:
        """An arm's mean over its runs, at the points that all of them have; no point without a run."""
        runs = [run_id for run_id in arm.runs.values() if run_id in self.y.columns]
        if not runs:
            return Curve(*(np.empty(0) for _ in range(4)))
        x, y = self.x[runs].to_numpy(), self.y[runs].to_numpy()
        whole = np.isfinite(y).all(axis=1)
        centre, low, high = mean_of_columns(y[whole])
        return Curve(x[whole].mean(axis=1), centre, low, high)


def track(frame: DataFrame, at: str, x: str, y: str) -> Track:
    """Columns `y` over `x` of every run in a frame, at each value of column `at`.

    Rows of one run with the same `at` are averaged first.
    """
    grouped = frame.assign(at=frame[at]).groupby(["at", "run_id"]).agg(x=(x, "mean"), y=(y, "mean"))
    return Track(grouped["x"].unstack("run_id"), grouped["y"].unstack("run_id"))


def draw_curve(axes: Axes, arm: Arm, curve: Curve, marker: str = "") -> None:
    """A line in the arm's style, with a band where there is an interval."""
    style = line_style(arm)
    axes.plot(curve.x, curve.y, marker=marker, **style)
    if np.isfinite(curve.low).any():
        axes.fill_between(curve.x, curve.low, curve.high, color=style["color"], alpha=0.13, linewidth=0)
