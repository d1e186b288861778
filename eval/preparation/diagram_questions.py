"""Sets of questions with diagrams whose hub files have the splits already: one row, one question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eval.preparation.base import SourceQuestion, SourceSplits
from eval.preparation.rows import rows
from eval.preparation.settings import DiagramQuestionsSettings
from eval.preparation.source_files import SourceFiles, locate

RowReader = Callable[[dict[str, Any], str], SourceQuestion]
"""(row, its place) -> the question; raises DataError naming the place."""


def splits_of_rows(
    settings: DiagramQuestionsSettings, folder: Path | None, read_row: RowReader
) -> SourceSplits:
    """Every split of the settings, its rows read with `read_row`. Raises DataError when files are missing."""
    files = dict(
        zip(settings.splits, locate(settings.name, list(settings.splits.values()), folder), strict=True)
    )
    return SourceSplits(
        sizes={split: wanted.rows for split, wanted in settings.splits.items()},
        questions={split: _questions(found, read_row) for split, found in files.items()},
        files=tuple(files.values()),
        notes={},
        has_images=True,
    )


def _questions(files: SourceFiles, read_row: RowReader) -> Iterator[SourceQuestion]:
    for place, row in rows(files.paths, files.folder):
        yield read_row(row, place)
