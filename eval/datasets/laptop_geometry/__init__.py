"""Synthetic geometry word problems, small enough to train on with a laptop: see `questions`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from eval.datasets.laptop_geometry.problem import Problem, prompt
from eval.datasets.laptop_geometry.splits import split_problems
from eval.datasets.settings import LaptopGeometrySplits
from fastrl.rollouts import Question


def questions(config: Mapping[str, Any], split: str) -> list[Question]:
    """The questions of one split of a config (`LaptopGeometrySettings` as a mapping), in a fixed order.

    A question's id comes from its text alone, so it stays the same under other seeds and sizes.
    Raises ValueError for an unknown split, and for one that asks for more questions than there are.
    """
    splits = LaptopGeometrySplits.from_mapping(config["splits"])
    return [_question(problem) for problem in split_problems(splits, split)]


def _question(problem: Problem) -> Question:
    digest = hashlib.sha256(problem.text.encode()).hexdigest()[:10]
    return Question(
        id=f"laptop_geometry/{problem.family}/{digest}",
        prompt=prompt(problem),
        answer=str(problem.answer),
        family=problem.family,
    )
