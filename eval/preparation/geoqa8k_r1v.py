"""GeoQA8K-R1V from R1-V's hub sets.

The training set has the columns image, problem and solution (`<answer> 145° </answer>`); the later set with
both splits is for EasyR1, whose columns are images, problem and answer. Rows of either are read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from eval.preparation.base import SourceQuestion, SourceSplits, source_question
from eval.preparation.diagram_questions import splits_of_rows
from eval.preparation.images import embedded_images
from eval.preparation.rows import field
from eval.preparation.settings import DiagramQuestionsSettings

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def source_splits(settings: DiagramQuestionsSettings, folder: Path | None) -> SourceSplits:
    """The splits as the hub sets have them. Raises DataError when files are missing."""
    return splits_of_rows(settings, folder, read_row)


def read_row(row: dict[str, Any], place: str) -> SourceQuestion:
    """The question of a row. Raises DataError naming the place for a missing column or a corrupt image."""
    images = embedded_images(field(row, ["images", "image"], place), place)
    answer = field(row, ["answer", "solution"], place)
    tagged = _ANSWER.search(answer) if isinstance(answer, str) else None
    return source_question(
        field(row, ["problem"], place), tagged.group(1) if tagged else answer, "", images, place
    )
