"""The figure of `fastrl correlate`: token similarity against gradient similarity, pair by pair (Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures.spec import figure_bytes
from analysis.figures.style import INK, MUTED, PAGE_WIDTH, panel_title
from analysis.offline.correlation import Pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CORRECT, _WRONG, _UNKNOWN = "#0072B2", "#D55E00", "#8a8a8a"
_BINS = 10
_LEAST_IN_BIN = 5


def correlation_figure(record: Mapping[str, Any], pairs: Pairs, formats: tuple[str, ...]) -> dict[str, bytes]:
    """The figure as bytes by format. record: what `correlate.json` holds."""
    return figure_bytes((PAGE_WIDTH, 2.95), lambda figure: _draw(figure, record, pairs), formats)


def _draw(figure: Figure, record: Mapping[str, Any], pairs: Pairs) -> None:
    scatter, intervals = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _scatter_panel(scatter, pairs)
    _interval_panel(intervals, record)
    figure.legend(
        *intervals.get_legend_handles_labels(), loc="outside upper right", ncols=2, handlelength=1.0
    )


def _scatter_panel(axes: Axes, pairs: Pairs) -> None:
    panel_title(axes, "a", f"{len(pairs)} pairs of equal advantage")
    kinds = (
        ("both correct", pairs.correct == 1, _CORRECT),
        ("both wrong", pairs.correct == 0, _WRONG),
        ("other", np.isnan(pairs.correct), _UNKNOWN),
    )
    for name, chosen, own in kinds:
        shown = chosen & ~pairs.duplicate
        if shown.any():
            alpha = float(np.clip(250 / shown.sum(), 0.12, 0.6))
            axes.plot(
                pairs.jaccard[shown],
                pairs.cosine[shown],
                "o",
                markersize=2.4,
                markeredgewidth=0,
                color=own,
                alpha=alpha,
                rasterized=True,
            )
            axes.plot([], [], "o", markersize=3.5, markeredgewidth=0, color=own, label=name)
    if pairs.duplicate.any():
        count = int(pairs.duplicate.sum())
        axes.plot(1, 1, "*", markersize=8, color=INK, clip_on=False, zorder=4, label=f"{count} duplicates")
    x, y = _binned_means(pairs.where(~pairs.duplicate))
    axes.plot(x, y, color=INK, linewidth=1.6, label="mean, without duplicates")
    axes.axhline(0, color=MUTED, linewidth=0.7, zorder=1)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(min(-0.1, float(pairs.cosine.min()) - 0.05), 1.02)
    axes.set_xlabel("Token Jaccard similarity")
    axes.set_ylabel("Cosine of policy gradients")
    axes.legend(
        loc="best",
        handlelength=1.4,
        borderpad=0.2,
        frameon=True,
        facecolor="white",
        edgecolor="none",
        framealpha=0.85,
    )


def _binned_means(pairs: Pairs) -> tuple[list[float], list[float]]:
    """Means of the cosine in equal bins of Jaccard similarity that hold enough pairs."""
    place = np.minimum((pairs.jaccard * _BINS).astype(int), _BINS - 1)
    full = [bin_ for bin_ in range(_BINS) if (place == bin_).sum() >= _LEAST_IN_BIN]
    return (
        [float(pairs.jaccard[place == bin_].mean()) for bin_ in full],
        [float(pairs.cosine[place == bin_].mean()) for bin_ in full],
    )


def _interval_panel(axes: Axes, record: Mapping[str, Any]) -> None:
    panel_title(axes, "b", "Correlation, 95 % over questions")
    rows = record["correlations"]
    for row, entry in enumerate(rows):
        for name, marker, shift in (("pearson", "o", -0.14), ("spearman", "D", 0.14)):
            found = entry[name]
            if found is None:
                continue
            own = {"pearson": INK, "spearman": "#009E73"}[name]
            if found["ci"] is not None:
                axes.plot(found["ci"], [row + shift] * 2, color=own, linewidth=1.1)
            label = name.capitalize() if row == 0 else None
            axes.plot(found["value"], row + shift, marker, color=own, markersize=3.6, label=label)
    names = [entry["subset"].replace(", without duplicates", ",\nno duplicates") for entry in rows]
    axes.set_yticks(
        range(len(rows)), [f"{name} ({entry['pairs']})" for name, entry in zip(names, rows, strict=True)]
    )
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Correlation of Jaccard similarity and cosine")
    low = min((found["ci"] or [found["value"]])[0] for found in _found(rows))
    axes.set_xlim(min(0.0, low - 0.05), 1.0)


def _found(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry[name] for entry in rows for name in ("pearson", "spearman") if entry[name]] or [
        {"ci": None, "value": 0.0}
    ]
