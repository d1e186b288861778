"""The seven families of one- and two-step problems that the laptop policy is trained and validated on.

Each function lists every problem of its family, so that a split is a choice from a finite, known set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eval.datasets.laptop_geometry.problem import Problem, Solution

TRIANGLES = ("ABC", "PQR", "XYZ", "DEF", "KLM", "STU")
RECTANGLES = ("rectangle", "garden", "room", "field")
SQUARES = ("square", "square tile", "chessboard", "square garden")
SIDES = range(2, 11)


def triangle() -> Iterator[Problem]:
    """The third angle of a triangle, from the other two."""
    for a in range(10, 121, 10):
        for b in range(10, min(120, 170 - a) + 1, 10):
            for name in TRIANGLES:
                yield Problem(
                    family="triangle",
                    given=(a, b),
                    text=f"In triangle {name}, two angles are {a} and {b}. Find the third angle.",
                    solution=_third_angle(a, b, total=180),
                    mistake=_third_angle(a, b, total=360),
                )


def _third_angle(a: int, b: int, total: int) -> Solution:
    return Solution(
        reason=f"The angles of a triangle sum to {total}.",
        equations=(f"{a}+{b}={a + b}", f"{total}-{a + b}={total - a - b}"),
        result=total - a - b,
    )


def supplementary() -> Iterator[Problem]:
    """The angle that makes a straight angle with a given one."""
    for a in range(5, 176, 5):
        for text in (
            f"Two angles are supplementary. One is {a}. Find the other.",
            f"Two angles lie on a line. One is {a}. Find the other.",
            f"A straight angle is cut in two. One part is {a}. Find the other.",
        ):
            yield Problem(
                family="supplementary",
                given=(a,),
                text=text,
                solution=_other_angle(a, total=180),
                mistake=_other_angle(a, total=90 if a < 90 else 360),
            )


def complementary() -> Iterator[Problem]:
    """The angle that makes a right angle with a given one."""
    for a in range(5, 86, 5):
        for text in (
            f"Two angles are complementary. One is {a}. Find the other.",
            f"Two angles make a corner of a square. One is {a}. Find the other.",
            f"A right angle is cut in two. One part is {a}. Find the other.",
        ):
            yield Problem(
                family="complementary",
                given=(a,),
                text=text,
                solution=_other_angle(a, total=90),
                mistake=_other_angle(a, total=180),
            )


def _other_angle(a: int, total: int) -> Solution:
    return Solution(
        reason=f"The two angles together make {total}.",
        equations=(f"{total}-{a}={total - a}",),
        result=total - a,
    )


def rectangle_perimeter() -> Iterator[Problem]:
    """The perimeter of a rectangle; the mistake leaves out the doubling."""
    for a in SIDES:
        for b in SIDES:
            for name in RECTANGLES:
                yield Problem(
                    family="rectangle_perimeter",
                    given=(a, b),
                    text=f"A {name} is {a} by {b}. Find its perimeter.",
                    solution=Solution(
                        reason="Perimeter is twice length plus width.",
                        equations=(f"{a}+{b}={a + b}", f"2*{a + b}={2 * (a + b)}"),
                        result=2 * (a + b),
                    ),
                    mistake=Solution(
                        reason="Perimeter is length plus width.",
                        equations=(f"{a}+{b}={a + b}",),
                        result=a + b,
                    ),
                )


def rectangle_area() -> Iterator[Problem]:
    """The area of a rectangle; the mistake adds instead (2 by 2 is left out: there both give 4)."""
    for a in SIDES:
        for b in SIDES:
            if a == b == 2:
                continue
            for name in RECTANGLES:
                yield Problem(
                    family="rectangle_area",
                    given=(a, b),
                    text=f"A {name} is {a} by {b}. Find its area.",
                    solution=Solution(
                        reason="Area is length times width.", equations=(f"{a}*{b}={a * b}",), result=a * b
                    ),
                    mistake=Solution(
                        reason="Area is length plus width.", equations=(f"{a}+{b}={a + b}",), result=a + b
                    ),
                )


def isosceles_base() -> Iterator[Problem]:
    """A base angle of an isosceles triangle, from its apex; the mistake forgets to halve."""
    for apex in range(20, 161, 20):
        rest = 180 - apex
        for name in TRIANGLES:
            yield Problem(
                family="isosceles_base",
                given=(apex,),
                text=f"An isosceles triangle {name} has apex angle {apex}. Find a base angle.",
                solution=Solution(
                    reason="Base angles are equal.",
                    equations=(f"180-{apex}={rest}", f"{rest}/2={rest // 2}"),
                    result=rest // 2,
                ),
                mistake=Solution(
                    reason="Subtract the apex from 180.", equations=(f"180-{apex}={rest}",), result=rest
                ),
            )


def square_perimeter() -> Iterator[Problem]:
    """The perimeter of a square; the mistake counts two of its sides."""
    for side in range(2, 21):
        for name in SQUARES:
            yield Problem(
                family="square_perimeter",
                given=(side,),
                text=f"A {name} has side {side}. Find its perimeter.",
                solution=Solution(
                    reason="A square has four equal sides.",
                    equations=(f"4*{side}={4 * side}",),
                    result=4 * side,
                ),
                mistake=Solution(
                    reason="Perimeter is twice the side.",
                    equations=(f"2*{side}={2 * side}",),
                    result=2 * side,
                ),
            )


FAMILIES: dict[str, Callable[[], Iterator[Problem]]] = {
    "triangle": triangle,
    "supplementary": supplementary,
    "complementary": complementary,
    "rectangle_perimeter": rectangle_perimeter,
    "rectangle_area": rectangle_area,
    "isosceles_base": isosceles_base,
    "square_perimeter": square_perimeter,
}
