"""Where the lines and numbers of the out-of-domain families stand in their figures."""

from __future__ import annotations

import math
import random

from eval.datasets.laptop_figures.figure import WIDTH, Figure
from eval.datasets.laptop_figures.layouts import (
    ABOVE,
    BASE,
    BELOW,
    BESIDE,
    Layout,
    base_labels,
    isosceles_corners,
    triangle_corners,
)
from eval.datasets.laptop_figures.shapes import arc, corner_mark, number, outline, polar, tick


def exterior_angle(given: tuple[int, ...], rng: random.Random) -> Figure:
    """A triangle with two numbered angles, and a side that goes on beyond the third."""
    a, b, c = triangle_corners(given, top=rng.randint(12, 15))
    start = a if c[0] <= (a[0] + b[0]) / 2 else b
    beyond = polar(c, math.atan2(c[1] - start[1], c[0] - start[0]), 11)
    other = b if start == a else a
    strokes = (outline(a, b, c), (c, beyond), arc(a, b, c, 8), arc(b, a, c, 8), arc(c, beyond, other, 6))
    return Figure(strokes, base_labels(given))


def isosceles_apex(given: tuple[int, ...], rng: random.Random) -> Figure:
    """A numbered angle at the left end of the base, and marks on the equal sides."""
    (base_angle,) = given
    a, b, c = isosceles_corners(180 - 2 * base_angle, 42, BASE)
    strokes = (outline(a, b, c), arc(a, b, c, 8), tick(a, c, 4), tick(b, c, 4))
    return Figure(strokes, (number(str(base_angle), (a[0], BELOW)),))


def isosceles_exterior(given: tuple[int, ...], rng: random.Random) -> Figure:
    """The apex's angle, numbered above it, and a base that goes on to the right."""
    (apex_angle,) = given
    a, b, c = isosceles_corners(apex_angle, 36, base=52)
    end = (WIDTH - 5, 52)
    strokes = (outline(a, b, c), (b, end), arc(c, a, b, 9), arc(b, end, c, 6), tick(a, c, 4), tick(b, c, 4))
    return Figure(strokes, (number(str(apex_angle), (36, ABOVE)),))


def supplement_of_complement(given: tuple[int, ...], rng: random.Random) -> Figure:
    """A right angle and a ray in it, on a line; the number is below the marked part."""
    (angle,) = given
    vertex, end = (28, BASE), (WIDTH - 5, BASE)
    ray = polar(vertex, math.radians(-min(max(angle, 20), 70)), 32)
    strokes = (
        ((4, BASE), end),
        (vertex, (28, 3)),
        corner_mark(vertex, 1, 6),
        (vertex, ray),
        arc(vertex, end, ray, 20),
    )
    return Figure(strokes, (number(str(angle), (60, BELOW)),))


def longer_rectangle(given: tuple[int, ...], rng: random.Random) -> Figure:
    """Width to the right, and above the length as a sum: the width and how much longer it is."""
    width, more = given
    sides = outline((6, 19), (52, 19), (52, 52), (6, 52))
    return Figure((sides,), (number(f"{width}+{more}", (32, ABOVE)), number(str(width), BESIDE)))


OUT_OF_DOMAIN_LAYOUTS: dict[str, Layout] = {
    "exterior_angle": exterior_angle,
    "isosceles_apex": isosceles_apex,
    "isosceles_exterior": isosceles_exterior,
    "supplement_of_complement": supplement_of_complement,
    "longer_rectangle_perimeter": longer_rectangle,
    "longer_rectangle_area": longer_rectangle,
}
