"""A metric of tracked runs by their tags, as MLflow's search finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.figures.spec import figure_bytes
from analysis.figures.style import COLUMN_WIDTH, colour
from analysis.statistics import Estimate, mean
from analysis.study import printable
from analysis.tracking.names import RUN_ID_TAG, metric_name
from analysis.tracking.store import open_client, shown
from experiments.errors import UserError, did_you_mean, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_ABSENT = "—"
_ARM = "tags.arm"


@dataclass(frozen=True)
class ComparedGroup:
    """The runs with the same values of the compared tags.

    runs: the metric of each run that has it. without: how many have not. arms: how many arms they are of; an
    interval over the runs of several would take runs of one seed for independent ones, so there is none.
    """

    values: tuple[str, ...]
    runs: tuple[float, ...]
    estimate: Estimate | None
    without: int
    arms: int

    @property
    def name(self) -> str:
        return ", ".join(value for value in self.values if value != _ABSENT) or _ABSENT


@dataclass(frozen=True)
class Comparison:
    """A metric's last value, grouped by tags (`by`, such as method and tau)."""

    study: str
    metric: str
    by: tuple[str, ...]
    groups: tuple[ComparedGroup, ...]


def compare_runs(uri: str, study: str, metric: str, by: Sequence[str]) -> Comparison:
    """Group the runs of an experiment by tags, and average a metric's last value in each group.

    uri: MLflow's tracking URI. Groups come in the order in which their runs were started. Raises UserError
    for an experiment, metric or tag that MLflow does not have.
    """
    client = open_client(uri)
    if client.get_experiment_by_name(study) is None:
        raise UserError(
            f'MLflow has no runs of the study "{study}".', shown(uri), f"track it: fastrl track study={study}"
        )
    runs = _search(uri, study)
    column = f"metrics.{metric_name(metric)}"
    metrics = [name.removeprefix("metrics.") for name in runs.columns if name.startswith("metrics.")]
    if column not in runs:
        way_out = f"{did_you_mean(metric, metrics)}metrics: {listed(metrics)}"
        raise UserError(f'No run of {study} has a metric "{metric}".', shown(uri), way_out)
    tags = [name.removeprefix("tags.") for name in runs.columns if name.startswith("tags.")]
    for name in by:
        if name not in tags:
            own = [tag for tag in tags if not tag.startswith(("mlflow.", "fastrl."))]
            way_out = f"{did_you_mean(name, own)}tags: {listed(own)}"
            raise UserError(f'No run of {study} has a tag "{name}".', shown(uri), way_out)
    return Comparison(study, metric, tuple(by), tuple(_groups(runs, column, by)))


def _search(uri: str, study: str) -> DataFrame:
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        found: Any = mlflow.search_runs(experiment_names=[study], order_by=["attributes.start_time ASC"])
    finally:
        mlflow.set_tracking_uri(before)
    frame: DataFrame = found
    tag = f"tags.{RUN_ID_TAG}"
    return frame[frame[tag].notna()] if tag in frame else frame  # without the run of the study


def _groups(runs: DataFrame, column: str, by: Sequence[str]) -> list[ComparedGroup]:
    keys = runs[[f"tags.{name}" for name in by]].fillna(_ABSENT).agg(tuple, axis=1)
    groups = []
    for key in dict.fromkeys(keys):
        values = runs.loc[[each == key for each in keys], column]
        found = values.dropna()
        arms = runs.loc[found.index, _ARM].nunique() if _ARM in runs else 1
        estimate = mean(found.to_numpy()) if len(found) else None
        if estimate is not None and arms > 1:
            estimate = replace(estimate, ci=None)
        names, each = tuple(printable(str(text)) for text in key), tuple(map(float, found))
        groups.append(ComparedGroup(names, each, estimate, len(values) - len(found), arms))
    return groups


def comparison_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """A header and a row a group, for the terminal."""
    header = [*comparison.by, comparison.metric, "95 % interval", "runs", "arms", "without it"]
    rows = []
    for group in comparison.groups:
        estimate = group.estimate
        value = f"{estimate.value:.6g}" if estimate else _ABSENT
        ci = f"{estimate.ci[0]:.6g} to {estimate.ci[1]:.6g}" if estimate and estimate.ci else _ABSENT
        counts = [str(estimate.n if estimate else 0), str(group.arms), str(group.without or "")]
        rows.append([*group.values, value, ci, *counts])
    return header, rows


def comparison_figure(comparison: Comparison, formats: tuple[str, ...]) -> dict[str, bytes]:
    """The groups' means and intervals as a figure, by format."""
    shown_groups = [group for group in comparison.groups if group.estimate]
    height = 0.95 + 0.22 * max(len(shown_groups), 2)
    return figure_bytes(
        (COLUMN_WIDTH * 1.4, height), lambda figure: _draw(figure, comparison, shown_groups), formats
    )


def _draw(figure: Figure, comparison: Comparison, groups: Sequence[ComparedGroup]) -> None:
    axes = figure.add_subplot()
    for row, group in enumerate(groups):
        own = colour(group.values[0])
        if group.estimate is None:
            continue
        if group.estimate.ci:
            axes.plot(group.estimate.ci, [row, row], color=own)
        axes.plot(group.runs, [row] * len(group.runs), "|", color=own, alpha=0.6, markersize=5)
        axes.plot(group.estimate.value, row, "o", color=own)
    axes.set_yticks(range(len(groups)), [group.name for group in groups])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.margins(y=0.15)
    axes.set_xlabel(f"{comparison.metric}\nmeans (dots), single runs (strokes), 95 % intervals")
