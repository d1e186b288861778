"""The laptop's geometry figures, drawn here: problems in the schema of Geometry3K, with stable ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from eval.datasets.laptop_figures.problem import FIGURES, PicturedProblem, prompt
from eval.datasets.laptop_geometry.problem import Problem
from eval.datasets.laptop_geometry.splits import SPLITS, split_problems
from eval.datasets.records import DataError
from eval.datasets.settings import LaptopFiguresSettings
from eval.preparation.base import SourceQuestion, SourceSplits, source_question


def source_splits(settings: LaptopFiguresSettings, folder: Path | None) -> SourceSplits:
    """All splits of the settings. Raises DataError for a folder to read from, ValueError when problems are
    too few."""
    if folder is not None:
        raise DataError("laptop_figures is drawn, not read from files; leave --from out")
    problems = {split: split_problems(settings.splits, split, FIGURES) for split in SPLITS}
    return SourceSplits(
        sizes={split: len(drawn) for split, drawn in problems.items()},
        questions={split: _questions(split, drawn) for split, drawn in problems.items()},
        files=(),
        notes={"splits": dataclasses.asdict(settings.splits)},
        has_images=True,
    )


def _questions(split: str, problems: Sequence[Problem]) -> Iterator[SourceQuestion]:
    for number, problem in enumerate(problems):
        assert isinstance(problem, PicturedProblem)
        origin = f"laptop_figures, {split}, problem {number}"
        yield source_question(prompt(problem), str(problem.answer), problem.family, (problem.png(),), origin)
