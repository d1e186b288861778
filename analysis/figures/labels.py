"""Names beside points, overlapping neither each other nor the points; a thin line leads to a far one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ANGLES = np.deg2rad(np.arange(0, 360, 15))
_DISTANCES = (5.0, 9.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0, 80.0, 98.0)
"""Points between a name and what it names, tried for each angle."""
_LEADER_FROM = 9.0
_CLEAR = 1.5
_ROUNDS = 6
_NAME, _OVERLAP, _CROSSING, _OUTSIDE, _DISTANCE, _SIDE, _HIDDEN = 150.0, 40.0, 60.0, 1e4, 1.0, 2.0, 30.0
"""Weights of the search: to cover a name or something else, cross a leader, leave the axes, be far, not be
beside, have a leader that runs along the point's own bar."""


@dataclass(frozen=True)
class Label:
    """A name for a point in data coordinates; `radius`: of its marker, in points."""

    text: str
    x: float
    y: float
    colour: str
    radius: float


def place_labels(axes: Axes, labels: Sequence[Label], bars: Sequence[tuple[float, ...]], size: float) -> None:
    """Write the labels; call it last, when the limits and the layout of the axes are final.

    bars: (x0, y0, x1, y1) in data coordinates of lines that names should not cover. size: of the font.
    """
    figure = axes.get_figure(root=True)
    if figure is None or not labels:
        return
    figure.draw_without_rendering()  # constrained layout moves the axes now, not after the search
    scale = figure.dpi / 72
    anchors = axes.transData.transform([(label.x, label.y) for label in labels]) / scale
    backing = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
    texts = [
        axes.annotate(
            label.text,
            (label.x, label.y),
            (0, 0),
            textcoords="offset points",
            fontsize=size,
            color=label.colour,
            bbox=backing,
            zorder=4,
        )
        for label in labels
    ]
    extents = [text.get_window_extent() for text in texts]
    sizes = np.array([(extent.width, extent.height) for extent in extents]) / scale
    box = axes.get_window_extent()
    frame = np.array([box.x0, box.y0, box.x1, box.y1]) / scale
    radii = np.array([label.radius for label in labels])
    lines = [np.ravel(axes.transData.transform(np.reshape(bar, (2, 2)))) / scale for bar in bars]
    chosen = _search(anchors, radii, sizes, frame, np.reshape(lines, (-1, 4)))
    for text, anchor, rectangle, label in zip(texts, anchors, chosen, labels, strict=True):
        text.set_position((rectangle[0] - anchor[0], rectangle[1] - anchor[1]))
        text.set_verticalalignment("bottom")
        end = np.clip(anchor, rectangle[:2], rectangle[2:])
        if np.hypot(*(end - anchor)) > _LEADER_FROM + label.radius:
            axes.annotate(
                "",
                xy=(label.x, label.y),
                xytext=tuple(end - anchor),
                textcoords="offset points",
                arrowprops={
                    "arrowstyle": "-",
                    "color": label.colour,
                    "linewidth": 0.5,
                    "alpha": 0.6,
                    "shrinkB": label.radius,
                },
            )


def _search(
    anchors: NDArray[np.float64],
    radii: NDArray[np.float64],
    sizes: NDArray[np.float64],
    frame: NDArray[np.float64],
    lines: NDArray[np.float64],
) -> NDArray[np.float64]:
    """A rectangle (x0, y0, x1, y1) for each name: the cheapest of its candidates, in a few rounds."""
    markers = np.column_stack([anchors - radii[:, None], anchors + radii[:, None]])
    candidates = [_candidates(*each) for each in zip(anchors, radii, sizes, strict=True)]
    fixed = [
        _fixed_costs(rectangles, anchor, markers, lines, frame)
        for rectangles, anchor in zip(candidates, anchors, strict=True)
    ]
    crowded = np.argsort([-np.sum(np.hypot(*(anchors - anchor).T) < 40) for anchor in anchors], kind="stable")
    chosen: dict[int, NDArray[np.float64]] = {}
    for _ in range(_ROUNDS):
        for index in crowded:
            others = [other for other in chosen if other != index]
            costs = fixed[index]
            if others:
                rectangles = np.array([chosen[other] for other in others])
                costs = costs + _NAME * _overlaps(candidates[index], rectangles).sum(axis=1)
                costs = costs + _CROSSING * _crossings(
                    candidates[index], anchors[index], rectangles, anchors[others]
                )
            chosen[index] = candidates[index][int(np.argmin(costs))]
    return np.array([chosen[index] for index in range(len(anchors))])


def _candidates(anchor: NDArray[np.float64], radius: float, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rectangles around a point, at every angle and distance."""
    directions = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    rectangles = []
    for distance in _DISTANCES:
        nearest = anchor + directions * (radius + distance)
        corner = nearest - size * (1 - directions) / 2
        rectangles.append(np.column_stack([corner, corner + size]))
    stacked: NDArray[np.float64] = np.concatenate(rectangles)
    return stacked


def _fixed_costs(
    rectangles: NDArray[np.float64],
    anchor: NDArray[np.float64],
    markers: NDArray[np.float64],
    lines: NDArray[np.float64],
    frame: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What each candidate costs whatever the other names do."""
    costs = _OVERLAP * _overlaps(rectangles, markers).sum(axis=1)
    if len(lines):
        upright = np.column_stack(
            [np.minimum(lines[:, :2], lines[:, 2:]), np.maximum(lines[:, :2], lines[:, 2:])]
        )
        costs += 0.5 * _OVERLAP * _overlaps(rectangles, upright).sum(axis=1)
    outside = np.maximum(frame[:2] - rectangles[:, :2], 0) + np.maximum(rectangles[:, 2:] - frame[2:], 0)
    costs += _OUTSIDE * (outside.sum(axis=1) > 0)
    ends = np.clip(anchor, rectangles[:, :2], rectangles[:, 2:])
    distances = np.hypot(*(ends - anchor).T)
    costs += _DISTANCE * distances
    costs += _HIDDEN * ((distances > _LEADER_FROM) & _along(ends - anchor, anchor, lines))
    centres = (rectangles[:, :2] + rectangles[:, 2:]) / 2
    costs += _SIDE * (np.abs(centres[:, 1] - anchor[1]) > 3)
    return np.asarray(costs)


def _along(
    leaders: NDArray[np.float64], anchor: NDArray[np.float64], lines: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """(R,) whether a leader, an (R, 2) vector from the anchor, runs along an upright or level line there."""
    hidden = np.zeros(len(leaders), dtype=np.bool_)
    for axis in (0, 1):
        through = (np.abs(lines[:, [axis, axis + 2]] - anchor[axis]) < 1).all(axis=1)
        if through.any():
            hidden |= np.abs(leaders[:, axis]) < 0.15 * np.hypot(*leaders.T)
    return hidden


def _overlaps(rectangles: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R, O) 1 where rectangle and other overlap or nearly touch, else 0."""
    low = np.maximum(rectangles[:, None, :2], others[None, :, :2])
    high = np.minimum(rectangles[:, None, 2:], others[None, :, 2:])
    return np.asarray((high - low > -_CLEAR).all(axis=2), dtype=np.float64)


def _crossings(
    rectangles: NDArray[np.float64],
    anchor: NDArray[np.float64],
    other_rectangles: NDArray[np.float64],
    other_anchors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(R,) how many of the others' leaders each candidate's leader crosses."""
    ends = np.clip(anchor, rectangles[:, :2], rectangles[:, 2:])[:, None]
    other_ends = np.clip(other_anchors, other_rectangles[:, :2], other_rectangles[:, 2:])[None]
    start, other_starts = anchor[None, None], other_anchors[None]
    first = _turn(start, ends, other_starts) * _turn(start, ends, other_ends)
    second = _turn(other_starts, other_ends, start) * _turn(other_starts, other_ends, ends)
    return np.asarray(((first < 0) & (second < 0)).sum(axis=1), dtype=np.float64)


def _turn(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    turn: NDArray[np.float64] = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (
        b[..., 1] - a[..., 1]
    ) * (c[..., 0] - a[..., 0])
    return turn
