"""The figure of `fastrl replay`: what methods keep and sample, and the predicted seconds of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.figures.spec import figure_bytes
from analysis.figures.style import INK, MUTED, PAGE_WIDTH, colour, panel_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STAGES = (
    ("generation", ("gen", "reward"), "#b9c6d3"),
    ("selection", ("adv", "select"), "#56B4E9"),
    ("log-probs", ("old", "ref"), "#7d93a8"),
    ("updates", ("update_actor",), "#3f5468"),
)
_PALEST = 0.62
"""How far the palest threshold's colour goes towards white."""

_MARKERS = "osD^vP*X"
_DASHES = (0, (2, 1.5))


def replay_figure(record: Mapping[str, Any], formats: tuple[str, ...]) -> dict[str, bytes]:
    """The figure as bytes by format; `record` is what `replay.json` holds."""
    height = 2.2 + 0.16 * max(len(record["methods"]) - 4, 0)
    return figure_bytes((PAGE_WIDTH, height), lambda figure: _draw(figure, record), formats)


def _draw(figure: Figure, record: Mapping[str, Any]) -> None:
    methods = record["methods"]
    colours = _colours(methods)
    kept, path, seconds = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    for method, own, marker in zip(methods, colours, _MARKERS * len(methods), strict=False):
        style = {"color": own, "marker": marker, "markersize": 3.2, "linewidth": 1.1}
        epochs = [epoch + 1 for epoch in method["epochs"]]
        sampled, shares = method["n_by_epoch"], method["kept_shares"]
        if max(shares) < 1:  # a fixed number needs no distribution
            counts = range(0 if shares[0] else 1, len(shares))
            kept.plot(counts, [100 * shares[count] for count in counts], **style)
        if method is methods[0] or min(sampled) < max(sampled):
            path.plot(epochs, sampled, **style)
        if method is not methods[0]:
            path.plot(epochs, method["kept_by_epoch"], linestyle=_DASHES, **style, markerfacecolor="white")
    _kept_panel(kept, methods)
    _path_panel(path, methods)
    _seconds_panel(seconds, record)
    figure.legend(loc="outside lower center", ncols=min(len(methods), 6), handles=_handles(methods, colours))


def _kept_panel(axes: Axes, methods: Sequence[Mapping[str, Any]]) -> None:
    panel_title(axes, "a", "Kept trajectories")
    axes.set_xlabel("Kept per question")
    axes.set_ylabel("Questions (%)")
    axes.set_xticks(range(1, max(len(method["kept_shares"]) for method in methods)))
    axes.set_ylim(bottom=0)


def _path_panel(axes: Axes, methods: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    panel_title(axes, "b", "Rollouts by epoch")
    axes.set_xlabel("Epoch")
    axes.set_ylabel("Per question")
    axes.set_xticks(_few([epoch + 1 for epoch in methods[0]["epochs"]]))
    axes.set_ylim(0, max(max(method["n_by_epoch"]) for method in methods) * 1.3)
    solid = Line2D([], [], color=MUTED, label="sampled")
    dashed = Line2D([], [], color=MUTED, linestyle=_DASHES, label="kept")
    axes.legend(handles=[solid, dashed], loc="upper right", ncols=2, borderpad=0.1)


def _seconds_panel(axes: Axes, record: Mapping[str, Any]) -> None:
    methods, unit = record["methods"], record["costs"]["unit"]
    panel_title(axes, "c", "Predicted step")
    for row, method in enumerate(methods):
        left = 0.0
        for name, stages, own in _STAGES:
            width = sum(method["stages"].get(stage, 0.0) for stage in stages)
            axes.barh(row, width, 0.66, left, color=own, label=name if row == 0 else None)
            left += width
        axes.text(left, row, f" {method['speed']:.2f}×", va="center", color=INK, fontsize=7)
    axes.set_yticks(range(len(methods)), [method["label"] for method in methods])
    axes.set_ylim(len(methods) - 0.45, -1.6)  # room for the legend
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.14 * max(method["step"] for method in methods))
    axes.set_xlabel(f"{unit} a step")
    handles, names = axes.get_legend_handles_labels()
    shown = [
        (handle, name)
        for handle, name, (_, stages, _) in zip(handles, names, _STAGES, strict=True)
        if max(sum(method["stages"].get(s, 0.0) / method["step"] for s in stages) for method in methods)
        > 0.01
    ]
    axes.legend(
        *zip(*shown, strict=True),
        loc="upper left",
        ncols=len(shown),
        handlelength=0.9,
        handleheight=0.8,
        columnspacing=0.9,
        borderpad=0.1,
    )


def _handles(methods: Sequence[Mapping[str, Any]], colours: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=own, marker=marker, markersize=3.2, linewidth=1.1, label=method["label"])
        for method, own, marker in zip(methods, colours, _MARKERS * len(methods), strict=False)
    ]


def _colours(methods: Sequence[Mapping[str, Any]]) -> list[str]:
    """A colour a row: the method's own; several rows of one method go from pale to full."""
    names = [method["method"] for method in methods]
    chosen = []
    for i, name in enumerate(names):
        of_method = [j for j, other in enumerate(names) if other == name]
        place = of_method.index(i) / (len(of_method) - 1) if len(of_method) > 1 else 1.0
        chosen.append(_towards_white(colour(name), _PALEST * (1 - place)))
    return chosen


def _towards_white(own: str, share: float) -> str:
    parts = (int(own[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)


def _few(values: Sequence[int]) -> list[int]:
    """At most eight of the values, evenly apart."""
    return list(values)[:: -(-len(values) // 8)]
