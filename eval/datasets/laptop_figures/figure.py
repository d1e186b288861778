"""What a figure is made of, before it is drawn: lines in pixels and numbers beside them."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH, HEIGHT = 84, 56
"""Pixels of every figure: 6 x 4 patches of 14, which Qwen2.5-VL merges to 6 tokens."""

SCALE = 2
"""Pixels of a glyph's dot, whose glyphs are 5 x 7 dots."""

GLYPH_WIDTH, LABEL_HEIGHT = 5 * SCALE, 7 * SCALE
ADVANCE = 14
"""From one digit of a number to the next: a digit a patch, so that a tiny policy learns to read quickly."""

Point = tuple[int, int]
Box = tuple[int, int, int, int]
"""left, top, right, bottom in pixels; right and bottom are outside."""


@dataclass(frozen=True)
class Label:
    """A text of the glyphs in `drawing.GLYPHS`, whose left upper corner is at `at`."""

    text: str
    at: Point

    @property
    def box(self) -> Box:
        left, top = self.at
        return left, top, left + label_width(self.text), top + LABEL_HEIGHT


@dataclass(frozen=True)
class Figure:
    """Polylines through their points, and labels. All of it lies inside WIDTH x HEIGHT."""

    strokes: tuple[tuple[Point, ...], ...]
    labels: tuple[Label, ...]

    def moved(self, by: Point, labels_by: tuple[Point, ...]) -> Figure:
        """The lines moved together, and each label by its own amount."""
        return Figure(
            tuple(tuple(_sum(point, by) for point in stroke) for stroke in self.strokes),
            tuple(
                Label(label.text, _sum(label.at, own))
                for label, own in zip(self.labels, labels_by, strict=True)
            ),
        )


def label_width(text: str) -> int:
    """Pixels that a label is wide."""
    return len(text) * ADVANCE - (ADVANCE - GLYPH_WIDTH)


def _sum(point: Point, by: Point) -> Point:
    return point[0] + by[0], point[1] + by[1]
