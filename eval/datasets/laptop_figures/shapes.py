"""Lines and labels that layouts are put together from. Coordinates are rounded to whole pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eval.datasets.laptop_figures.figure import (
    ADVANCE,
    GLYPH_WIDTH,
    HEIGHT,
    LABEL_HEIGHT,
    WIDTH,
    Label,
    Point,
    label_width,
)

Stroke = tuple[Point, ...]

_ARC_STEPS = 4


def outline(*corners: Point) -> Stroke:
    """A closed polygon."""
    return (*corners, corners[0])


def arc(vertex: Point, one: Point, other: Point, radius: int) -> Stroke:
    """The mark of the angle at `vertex` between the directions to two points, the smaller way round."""
    start, end = _direction(vertex, one), _direction(vertex, other)
    turn = (end - start + math.pi) % (2 * math.pi) - math.pi
    angles = [start + turn * step / _ARC_STEPS for step in range(_ARC_STEPS + 1)]
    return tuple(polar(vertex, angle, radius) for angle in angles)


def tick(start: Point, end: Point, half_length: int) -> Stroke:
    """The mark across the middle of a side that says it is as long as others with the mark."""
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    across = _direction(start, end) + math.pi / 2
    dx, dy = half_length * math.cos(across), half_length * math.sin(across)
    return (
        (_whole(middle[0] - dx), _whole(middle[1] - dy)),
        (_whole(middle[0] + dx), _whole(middle[1] + dy)),
    )


def corner_mark(vertex: Point, right: int, size: int) -> Stroke:
    """The little square of a right angle that opens upwards, and to the right (1) or to the left (-1)."""
    x, y = vertex
    return (x, y - size), (x + right * size, y - size), (x + right * size, y)


def polar(vertex: Point, angle: float, distance: float) -> Point:
    """The point at a distance in a direction; angles are in radians, growing downwards as pixels do."""
    return _whole(vertex[0] + distance * math.cos(angle)), _whole(vertex[1] + distance * math.sin(angle))


def number(text: str, middle: Point) -> Label:
    """A label around a point, as near to it as the picture's cells of one digit allow."""
    columns, rows = WIDTH // ADVANCE, HEIGHT // LABEL_HEIGHT
    column = _whole((middle[0] - label_width(text) / 2) / ADVANCE)
    row = _whole(middle[1] / LABEL_HEIGHT - 0.5)
    inside = min(max(column, 0), columns - len(text)), min(max(row, 0), rows - 1)
    return Label(text, (inside[0] * ADVANCE + (ADVANCE - GLYPH_WIDTH) // 2, inside[1] * LABEL_HEIGHT))


def mirrored(points: Sequence[Point], width: int) -> Stroke:
    """The points seen in a mirror, in a picture of that width."""
    return tuple((width - 1 - x, y) for x, y in points)


def _direction(start: Point, end: Point) -> float:
    return math.atan2(end[1] - start[1], end[0] - start[0])


def _whole(value: float) -> int:
    # Rounded twice, so that the last bit of a cosine, which differs between machines, decides nothing.
    return math.floor(round(value, 6) + 0.5)
