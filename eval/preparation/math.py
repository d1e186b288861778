"""MATH (Hendrycks et al.): 12,500 text problems; the answer is the solution's last box.

Read from hub parquet files per subject, or from the authors' archive with one JSON file a problem. Both give
the same questions, and the same files here: splits and order depend on what a problem says, not where it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError
from eval.extraction.boxed import gold_answer
from eval.preparation.base import SourceQuestion, SourceSplits, source_question
from eval.preparation.rows import field, rows
from eval.preparation.settings import MathSettings
from eval.preparation.source_files import SourceFiles, locate


def source_splits(settings: MathSettings, folder: Path | None) -> SourceSplits:
    """Train and test, as `settings.split` says. Raises DataError when files are missing."""
    files = dict(
        zip(settings.official, locate(settings.name, list(settings.official.values()), folder), strict=True)
    )
    sizes = settings.sizes[settings.split]
    if settings.split == "official":
        questions = {split: _in_order(_questions(files[split])) for split in ("train", "test")}
    else:
        questions = _released(settings, [files["train"], files["test"]])
    return SourceSplits(
        sizes={"train": sizes.train, "test": sizes.test},
        questions=questions,
        files=(files["train"], files["test"]),
        notes={"split": settings.split} | ({} if settings.split == "official" else {"seed": settings.seed}),
        has_images=False,
    )


def read_row(row: dict[str, Any], place: str) -> SourceQuestion:
    """The question of a row. Raises DataError naming the place for a missing field or answer."""
    solution = field(row, ["solution"], place)
    answer = gold_answer(solution) if isinstance(solution, str) else None
    if answer is None:
        raise DataError(f"{place}: the solution has no \\boxed answer: {str(solution)[:80]!r}")
    subject = str(field(row, ["type", "subject"], place))
    return source_question(field(row, ["problem"], place), answer, subject, (), place)


def _questions(files: SourceFiles) -> Iterator[SourceQuestion]:
    for place, row in rows(files.paths, files.folder):
        yield read_row(row, place)


def _in_order(questions: Iterator[SourceQuestion]) -> Iterator[SourceQuestion]:
    yield from sorted(questions, key=SourceQuestion.content_id)


def _released(settings: MathSettings, files: list[SourceFiles]) -> dict[str, Iterator[SourceQuestion]]:
    """Train and test drawn from all problems: those that a seeded hash puts first are the test."""
    drawn: list[SourceQuestion] = []
    sizes = settings.sizes["released"]

    def draw() -> list[SourceQuestion]:
        if not drawn:
            drawn.extend(question for half in files for question in _questions(half))
            if len(drawn) != sizes.train + sizes.test:
                raise DataError(
                    f"{settings.name} has {len(drawn):,} problems where {sizes.train + sizes.test:,} are "
                    "expected; fetch the whole set again, or set dataset.sizes.released to what is meant"
                )
            drawn.sort(key=lambda question: _rank(settings.seed, question))
        return drawn

    def train() -> Iterator[SourceQuestion]:
        yield from _in_order(iter(draw()[sizes.test :]))

    def test() -> Iterator[SourceQuestion]:
        yield from _in_order(iter(draw()[: sizes.test]))

    return {"train": train(), "test": test()}


def _rank(seed: int, question: SourceQuestion) -> str:
    return hashlib.sha256(f"{seed}\0{question.content_id()}".encode()).hexdigest()
