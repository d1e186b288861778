"""A problem whose numbers and shape stand in a figure alone, and what its text asks for."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from PIL import Image

from eval.datasets.laptop_figures.drawing import INK, PENCIL, draw, png
from eval.datasets.laptop_figures.figure import Figure
from eval.datasets.laptop_figures.layouts import LAYOUTS, laid_out
from eval.datasets.laptop_figures.out_of_domain_layouts import OUT_OF_DOMAIN_LAYOUTS
from eval.datasets.laptop_geometry.families import FAMILIES
from eval.datasets.laptop_geometry.out_of_domain_families import OUT_OF_DOMAIN_FAMILIES
from eval.datasets.laptop_geometry.problem import Problem
from eval.datasets.laptop_geometry.splits import Families, ProblemSet

DRAWINGS = 12
"""Figures of a problem that differ in its layout's details."""

IMAGE_MARK = "<image>"

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "triangle": ("Find the third angle.", "What is the third angle?"),
    "supplementary": ("Find the other angle.", "What is the other angle?"),
    "complementary": ("Find the other angle.", "What is the other angle?"),
    "rectangle_perimeter": ("Find the perimeter.", "What is the perimeter?"),
    "rectangle_area": ("Find the area.", "What is the area?"),
    "isosceles_base": ("Find a base angle.", "What is a base angle?"),
    "square_perimeter": ("Find the perimeter.", "What is the perimeter?"),
    "exterior_angle": ("Find the exterior angle at the third.",),
    "isosceles_apex": ("Find the apex angle.",),
    "isosceles_exterior": ("Find the exterior angle at the base.",),
    "supplement_of_complement": ("Find the supplementary angle of the other.",),
    "longer_rectangle_perimeter": ("Find the perimeter.", "What is the perimeter?"),
    "longer_rectangle_area": ("Find the area.", "What is the area?"),
}
"""What the text of a family's problems asks. Families share texts: which one it is shows the figure alone."""


SHAPES: Mapping[str, str] = {
    "triangle": "triangle",
    "supplementary": "line",
    "complementary": "right angle",
    "rectangle_perimeter": "rectangle",
    "rectangle_area": "rectangle",
    "isosceles_base": "isosceles",
    "square_perimeter": "square",
    "exterior_angle": "triangle, exterior",
    "isosceles_apex": "isosceles, base",
    "isosceles_exterior": "isosceles, exterior",
    "supplement_of_complement": "right angle, line",
    "longer_rectangle_perimeter": "rectangle, longer",
    "longer_rectangle_area": "rectangle, longer",
}
"""What captions call the shapes."""


@dataclass(frozen=True)
class PicturedProblem(Problem):
    """A problem of `eval.datasets.laptop_geometry` with a figure in place of its words.

    drawing: which of the DRAWINGS figures of its family and numbers.
    """

    drawing: int

    def figure(self) -> Figure:
        """Lines and labels; the same for the same family, numbers and drawing."""
        rng = random.Random(f"{self.family}/{self.given}/{self.drawing}")
        return laid_out((LAYOUTS | OUT_OF_DOMAIN_LAYOUTS)[self.family], self.given, rng)

    def picture(self) -> Image.Image:
        """The figure in pixels, drawn in the style of the family's domain."""
        return draw(self.figure(), INK if self.family in LAYOUTS else PENCIL)

    def png(self) -> bytes:
        """The figure as a PNG file, of the same bytes on every machine."""
        return png(self.figure(), INK if self.family in LAYOUTS else PENCIL)


def prompt(problem: PicturedProblem) -> str:
    """The text given to the policy, with the figure's place in it."""
    return f"{IMAGE_MARK}{problem.text}"


def caption(problem: PicturedProblem) -> str:
    """What stands in the figure: its shape and its numbers, from left to right, then downwards."""
    return f"{SHAPES[problem.family]} {' '.join(map(str, problem.given))}"


def _pictured(family: str, worded: Callable[[], Iterator[Problem]]) -> Iterator[PicturedProblem]:
    """Each exercise of a family in both orders of its numbers, once for each question and drawing."""
    first_worded = {problem.given: problem for problem in reversed(list(worded()))}
    for given in sorted(first_worded):
        problem = first_worded[given]
        fields = {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}
        for text in QUESTIONS[family]:
            for drawing in range(DRAWINGS):
                yield PicturedProblem(**fields | {"text": text, "drawing": drawing})


def _families(worded: Families) -> Families:
    return {family: partial(_pictured, family, problems) for family, problems in worded.items()}


FIGURES = ProblemSet("laptop_figures", _families(FAMILIES), _families(OUT_OF_DOMAIN_FAMILIES))
