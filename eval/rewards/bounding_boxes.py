"""Bounding boxes out of untrusted text, in linear time, and how two of them overlap."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"\s*+([+-]?\d{1,12}+(?:\.\d{1,20}+)?)\s*+"
_COMMA = r"(?:,|\)\s*+,\s*+\()"
_BOX = re.compile(rf"[\[(]{_NUMBER},{_NUMBER}{_COMMA}{_NUMBER},{_NUMBER}[\])]", re.ASCII)
_THOUGHT_END = "</think>"


@dataclass(frozen=True)
class BoundingBox:
    """left <= right and top <= bottom, in any one unit: pixels, or shares of the image in thousandths."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    @property
    def centre(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def holds(self, point: tuple[float, float]) -> bool:
        """Whether a point is inside the box or on its edge."""
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom


def last_box(text: str) -> BoundingBox | None:
    """The last `[left, top, right, bottom]` of a text, after its thought when it closes one; else None.

    Round brackets and pairs `(left, top), (right, bottom)` count too. A last box whose sides are the wrong
    way round gives None: there is no second guess.
    """
    found = None
    for match in _BOX.finditer(text, text.rfind(_THOUGHT_END) + 1):
        found = match
    if found is None:
        return None
    left, top, right, bottom = map(float, found.groups())
    return BoundingBox(left, top, right, bottom) if left <= right and top <= bottom else None


def intersection_over_union(one: BoundingBox, other: BoundingBox) -> float:
    """Shared area over covered area, in [0, 1]; 0 when neither box has an area."""
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    shared = width * height if width > 0 and height > 0 else 0.0
    covered = one.area + other.area - shared
    return min(1.0, shared / covered) if covered > 0 else 0.0
