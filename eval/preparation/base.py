"""What a prepared question is, and what a training set's module says about its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eval.datasets.content_digest import content_digest
from eval.datasets.records import DataError
from eval.preparation.source_files import SourceFiles

IMAGE_MARK = "<image>"


@dataclass(frozen=True)
class SourceQuestion:
    """A question as its source has it, checked.

    problem: its text, with one `<image>` per image. answer: the gold answer. family: a label for breakdowns,
    "" when there is none. images: image files. origin: the file and the row it stands in, for messages.
    """

    problem: str
    answer: str
    family: str
    images: tuple[bytes, ...]
    origin: str

    def content_id(self) -> str:
        """16 hex digits of the sha256 of problem, answer and images: equal wherever the row stands."""
        return content_digest([self.problem.encode(), self.answer.encode(), *self.images])


@dataclass(frozen=True)
class SourceSplits:
    """A training set, read from its source while it is iterated.

    sizes: questions of each split, as they must be. questions: split -> its questions. files: what they are
    read from. notes: facts for the data card that reading yields; complete once every split has been read.
    has_images: whether questions carry images.
    """

    sizes: Mapping[str, int]
    questions: Mapping[str, Iterator[SourceQuestion]]
    files: tuple[SourceFiles, ...]
    notes: Mapping[str, Any]
    has_images: bool


def source_question(
    problem: object, answer: object, family: str, images: tuple[bytes, ...], origin: str
) -> SourceQuestion:
    """A checked question; a problem without `<image>` gets one per image in front.

    Raises DataError naming `origin` for an empty or missing text and for marks that don't match the images.
    """
    for field, text in (("problem", problem), ("answer", answer)):
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{origin}: {field} is {text!r}, not a text; fetch the file again")
    text, gold = str(problem).strip(), str(answer).strip()
    if images and IMAGE_MARK not in text:
        text = IMAGE_MARK * len(images) + text
    if images and text.count(IMAGE_MARK) != len(images):
        raise DataError(
            f"{origin}: the problem has {text.count(IMAGE_MARK)} {IMAGE_MARK} for {len(images)} images; "
            "fetch the file again"
        )
    return SourceQuestion(text, gold, family, images, origin)
