"""Six harder families that reinforcement learning never sees.

Each combines facts of the `families`. Every equation of their solutions occurs in a solution of those: new to
a policy is which steps to take, not how to calculate. The words are the same as far as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eval.datasets.laptop_geometry.families import RECTANGLES, SIDES, TRIANGLES
from eval.datasets.laptop_geometry.problem import Problem, Solution


def exterior_angle() -> Iterator[Problem]:
    """The exterior angle at the third vertex; the mistake stops at the interior angle."""
    reason = "The angles of a triangle sum to 180."
    for a in range(10, 121, 10):
        for b in range(10, min(120, 170 - a) + 1, 10):
            third = 180 - a - b
            if third == 90:
                continue
            to_third = (f"{a}+{b}={a + b}", f"180-{a + b}={third}")
            for name in TRIANGLES:
                yield Problem(
                    family="exterior_angle",
                    given=(a, b),
                    text=f"In triangle {name}, two angles are {a} and {b}. "
                    "Find the exterior angle at the third.",
                    solution=Solution(reason, (*to_third, f"180-{third}={a + b}"), a + b),
                    mistake=Solution(reason, to_third, third),
                )


def isosceles_apex() -> Iterator[Problem]:
    """The apex angle of an isosceles triangle, from a base angle; the mistake subtracts only one of them."""
    for base in range(10, 81, 10):
        both, apex = 2 * base, 180 - 2 * base
        for name in TRIANGLES:
            yield Problem(
                family="isosceles_apex",
                given=(base,),
                text=f"An isosceles triangle {name} has base angle {base}. Find the apex angle.",
                solution=Solution(
                    "Base angles are equal.", (f"{base}+{base}={both}", f"180-{both}={apex}"), apex
                ),
                mistake=Solution(
                    "Subtract the base angle from 180.", (f"180-{base}={180 - base}",), 180 - base
                ),
            )


def isosceles_exterior() -> Iterator[Problem]:
    """The exterior angle at the base of an isosceles triangle; the mistake stops at the base angle."""
    reason = "Base angles are equal."
    for apex in range(20, 161, 20):
        rest, base = 180 - apex, (180 - apex) // 2
        to_base = (f"180-{apex}={rest}", f"{rest}/2={base}")
        for name in TRIANGLES:
            yield Problem(
                family="isosceles_exterior",
                given=(apex,),
                text=f"An isosceles triangle {name} has apex angle {apex}. "
                "Find the exterior angle at the base.",
                solution=Solution(reason, (*to_base, f"180-{base}={180 - base}"), 180 - base),
                mistake=Solution(reason, to_base, base),
            )


def supplement_of_complement() -> Iterator[Problem]:
    """An angle and a given one make a right angle; its supplement. The mistake stops at the angle itself."""
    reason = "The two angles together make 90."
    for a in range(5, 86, 5):
        other = 90 - a
        for text in (
            f"Two angles are complementary. One is {a}. Find the supplementary angle of the other.",
            f"A right angle is cut in two. One part is {a}. Find the supplementary angle of the other.",
        ):
            yield Problem(
                family="supplement_of_complement",
                given=(a,),
                text=text,
                solution=Solution(reason, (f"90-{a}={other}", f"180-{other}={180 - other}"), 180 - other),
                mistake=Solution(reason, (f"90-{a}={other}",), other),
            )


def longer_rectangle_perimeter() -> Iterator[Problem]:
    """A rectangle's perimeter from its width and how much longer it is; the mistake leaves out a step."""
    for width, more, length, name in _longer_rectangles():
        half, wrong_half = width + length, width + more
        yield Problem(
            family="longer_rectangle_perimeter",
            given=(width, more),
            text=f"A {name} is {width} wide and {more} longer than wide. Find its perimeter.",
            solution=Solution(
                "Perimeter is twice length plus width.",
                (f"{width}+{more}={length}", f"{width}+{length}={half}", f"2*{half}={2 * half}"),
                2 * half,
            ),
            mistake=Solution(
                "Perimeter is twice length plus width.",
                (f"{width}+{more}={wrong_half}", f"2*{wrong_half}={2 * wrong_half}"),
                2 * wrong_half,
            ),
        )


def longer_rectangle_area() -> Iterator[Problem]:
    """A rectangle's area from its width and how much longer it is; the mistake takes that for its length."""
    for width, more, length, name in _longer_rectangles():
        reason = "Area is length times width."
        yield Problem(
            family="longer_rectangle_area",
            given=(width, more),
            text=f"A {name} is {width} wide and {more} longer than wide. Find its area.",
            solution=Solution(
                reason, (f"{width}+{more}={length}", f"{width}*{length}={width * length}"), width * length
            ),
            mistake=Solution(reason, (f"{width}*{more}={width * more}",), width * more),
        )


def _longer_rectangles() -> Iterator[tuple[int, int, int, str]]:
    """(width, how much longer, length, name), with both sides in `SIDES`."""
    for width in SIDES:
        for more in SIDES:
            if width + more in SIDES:
                for name in RECTANGLES:
                    yield width, more, width + more, name


OUT_OF_DOMAIN_FAMILIES: dict[str, Callable[[], Iterator[Problem]]] = {
    "exterior_angle": exterior_angle,
    "isosceles_apex": isosceles_apex,
    "isosceles_exterior": isosceles_exterior,
    "supplement_of_complement": supplement_of_complement,
    "longer_rectangle_perimeter": longer_rectangle_perimeter,
    "longer_rectangle_area": longer_rectangle_area,
}
