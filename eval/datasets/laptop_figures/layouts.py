"""Where the lines and numbers of each family stand in its figure. None is to scale, as textbooks' are not.

A layout takes the given numbers, in the order of `Problem.given`, and draws what varies from a random source.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from eval.datasets.laptop_figures.figure import HEIGHT, LABEL_HEIGHT, WIDTH, Figure, Label, Point
from eval.datasets.laptop_figures.shapes import (
    arc,
    corner_mark,
    mirrored,
    number,
    outline,
    polar,
    tick,
)

Layout = Callable[[tuple[int, ...], random.Random], Figure]

BASE = 36
"""Height of a base line with numbers below it."""

BELOW, ABOVE = 49, 7
"""Heights of the middle of numbers."""

BESIDE = (63, 35)
"""Middle of the number to the right of a rectangle."""

LEFT, RIGHT = 6, 77


def laid_out(layout: Layout, given: tuple[int, ...], rng: random.Random) -> Figure:
    """A layout's figure, its lines moved by up to a pixel and its labels too."""
    figure = layout(given, rng)
    labels_by = []
    for label in figure.labels:
        top = label.at[1]
        labels_by.append(
            (rng.randint(-1, 1), rng.randint(max(-1, -top), min(1, HEIGHT - LABEL_HEIGHT - top)))
        )
    return figure.moved((rng.randint(-1, 1), rng.randint(-1, 1)), tuple(labels_by))


def triangle(given: tuple[int, ...], rng: random.Random) -> Figure:
    """The angles at the base, numbered below it; an obtuse one is seen to be obtuse."""
    a, b, c = triangle_corners(given, top=rng.randint(3, 6))
    return Figure((outline(a, b, c), arc(a, b, c, 8), arc(b, a, c, 8)), base_labels(given))


def triangle_corners(given: tuple[int, ...], top: int) -> tuple[Point, Point, Point]:
    """The left and the right end of the base, and the apex at height `top`."""
    left, right = given
    if left > 90:
        return (30, BASE), (RIGHT, BASE), (12, top)
    if right > 90:
        return (LEFT, BASE), (WIDTH - 31, BASE), (WIDTH - 13, top)
    slope_left, slope_right = (math.tan(math.radians(min(max(angle, 15), 89.9))) for angle in given)
    share = slope_right / (slope_left + slope_right)
    apex = LEFT + math.floor(round((RIGHT - LEFT) * share, 6) + 0.5)
    return (LEFT, BASE), (RIGHT, BASE), (apex, top)


def base_labels(given: tuple[int, ...]) -> tuple[Label, Label]:
    """Two numbers below the ends of a base line."""
    left, right = map(str, given)
    return number(left, (0, BELOW)), number(right, (WIDTH, BELOW))


def supplementary(given: tuple[int, ...], rng: random.Random) -> Figure:
    """A line and a ray from its middle; the number is below the half whose angle is marked."""
    (angle,) = given
    vertex, end = (42, BASE), (4, BASE)
    ray = polar(vertex, math.radians(180 + min(max(angle, 25), 155)), 32)
    strokes = (((4, BASE), (WIDTH - 5, BASE)), (vertex, ray), arc(vertex, end, ray, 10))
    return _on_either_side(Figure(strokes, (number(str(angle), (20, BELOW)),)), rng)


def complementary(given: tuple[int, ...], rng: random.Random) -> Figure:
    """A right angle and a ray in it; the number is below the marked part, at the base line."""
    (angle,) = given
    vertex, end = (10, BASE), (WIDTH - 7, BASE)
    ray = polar(vertex, math.radians(-min(max(angle, 20), 70)), 32)
    strokes = (((10, 3), vertex, end), corner_mark(vertex, 1, 6), (vertex, ray), arc(vertex, end, ray, 20))
    return _on_either_side(Figure(strokes, (number(str(angle), (46, BELOW)),)), rng)


def rectangle(given: tuple[int, ...], rng: random.Random) -> Figure:
    """Length above, width to the right; lying when the length is the longer one, else standing."""
    length, width = given
    left = 3 + rng.randint(0, 2) if length >= width else 20 + rng.randint(0, 2)
    sides = outline((left, 19), (52, 19), (52, 52), (left, 52))
    return Figure((sides,), (number(str(length), ((left + 52) // 2, ABOVE)), number(str(width), BESIDE)))


def isosceles(given: tuple[int, ...], rng: random.Random) -> Figure:
    """The apex's angle, numbered above it, and marks on the equal sides."""
    (apex_angle,) = given
    a, b, c = isosceles_corners(apex_angle, 42, base=52)
    strokes = (outline(a, b, c), arc(c, a, b, 9), tick(a, c, 4), tick(b, c, 4))
    return Figure(strokes, (number(str(apex_angle), (42, ABOVE)),))


def isosceles_corners(apex_angle: int, middle: int, base: int) -> tuple[Point, Point, Point]:
    """The ends of the base and the apex: the wider the angle, the wider the triangle."""
    half = 18 + apex_angle // 10
    return (middle - half, base), (middle + half, base), (middle, base - 32)


def square(given: tuple[int, ...], rng: random.Random) -> Figure:
    """Marks on all sides; the side's number is above or to the right."""
    (side,) = given
    corners = (20, 21), (50, 21), (50, 51), (20, 51)
    sides = zip(corners, (*corners[1:], corners[0]), strict=True)
    label = number(str(side), (35, ABOVE) if rng.random() < 0.5 else BESIDE)
    return Figure((outline(*corners), *(tick(start, end, 2) for start, end in sides)), (label,))


def _on_either_side(figure: Figure, rng: random.Random) -> Figure:
    """The figure or, half of the time, its mirror image with its numbers not mirrored."""
    if rng.random() < 0.5:
        return figure
    labels = []
    for label in figure.labels:
        _, top, right, _ = label.box
        labels.append(Label(label.text, (WIDTH - right, top)))
    return Figure(tuple(mirrored(stroke, WIDTH) for stroke in figure.strokes), tuple(labels))


LAYOUTS: dict[str, Layout] = {
    "triangle": triangle,
    "supplementary": supplementary,
    "complementary": complementary,
    "rectangle_perimeter": rectangle,
    "rectangle_area": rectangle,
    "isosceles_base": isosceles,
    "square_perimeter": square,
}
