"""Geometry3K from `hiyouga/geometry3k`: columns images, problem (with `<image>`) and answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eval.preparation.base import SourceQuestion, SourceSplits, source_question
from eval.preparation.diagram_questions import splits_of_rows
from eval.preparation.images import embedded_images
from eval.preparation.rows import field
from eval.preparation.settings import DiagramQuestionsSettings


def source_splits(settings: DiagramQuestionsSettings, folder: Path | None) -> SourceSplits:
    """The splits as the hub set has them. Raises DataError when files are missing."""
    return splits_of_rows(settings, folder, read_row)


def read_row(row: dict[str, Any], place: str) -> SourceQuestion:
    """The question of a row. Raises DataError naming the place for a missing column or a corrupt image."""
    images = embedded_images(field(row, ["images"], place), place)
    return source_question(field(row, ["problem"], place), field(row, ["answer"], place), "", images, place)
