"""OS-Atlas grounding data: interface elements of screenshots, `sizes` of them drawn with a seed.

Annotation files are JSON arrays of {img_filename, instruction, bbox}, or of {img_filename, elements} with
several of {instruction, bbox}; a bbox is [left, top, right, bottom] in shares of the screenshot's width and
height. They are read once, item by item; an element is drawn when the hash of what it says is among the
smallest, so a draw depends on the seed and on the elements alone.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError
from eval.preparation.archives import StoredFiles
from eval.preparation.base import IMAGE_MARK, SourceQuestion, SourceSplits, source_question
from eval.preparation.images import checked_image
from eval.preparation.json_array import array_items
from eval.preparation.settings import HubFiles, OsAtlasSettings
from eval.preparation.source_files import SourceFiles, locate, what_to_fetch

Box = tuple[float, float, float, float]


@dataclass(frozen=True, order=True)
class _Element:
    """rank: hash of seed and content, what orders the draw."""

    rank: int
    part: str
    image: str
    instruction: str
    box: Box
    place: str


def source_splits(settings: OsAtlasSettings, folder: Path | None) -> SourceSplits:
    """The drawn splits, in order of the sizes' names. Raises DataError when files are missing.

    The set is hundreds of gigabytes, so it is never fetched unasked: without a folder the error says how.
    """
    if folder is None:
        files = [part.annotations for part in settings.parts.values()]
        files += [image for part in settings.parts.values() for image in part.images]
        raise DataError(
            f"{settings.name}: the set is hundreds of gigabytes and is not fetched unasked; "
            + what_to_fetch(settings.name, settings.repository, settings.revision, list(dict.fromkeys(files)))
            + ", or leave parts out with `~dataset.parts.NAME`"
        )
    wanted = [
        HubFiles(settings.repository, settings.revision, (part.annotations,))
        for part in settings.parts.values()
    ]
    files_of = dict(zip(settings.parts, locate(settings.name, wanted, folder), strict=True))
    notes: dict[str, Any] = {"seed": settings.seed, "scale": settings.scale, "elements": {}, "left_out": {}}
    return SourceSplits(
        sizes=dict(settings.sizes),
        questions=_Draw(settings, files_of, notes).splits(),
        files=tuple(files_of.values()),
        notes=notes,
        has_images=True,
    )


class _Draw:
    """Draws the elements at the first question asked for, then reads screenshots one by one."""

    def __init__(
        self, settings: OsAtlasSettings, files: Mapping[str, SourceFiles], notes: dict[str, Any]
    ) -> None:
        self._settings, self._files, self._notes = settings, files, notes
        self._elements: list[_Element] | None = None

    def splits(self) -> dict[str, Iterator[SourceQuestion]]:
        found, start = {}, 0
        for split, size in self._settings.sizes.items():
            found[split] = self._questions(start, start + size)
            start += size
        return found

    def _questions(self, start: int, end: int) -> Iterator[SourceQuestion]:
        with ExitStack() as opened:
            screenshots = {part: opened.enter_context(self._screenshots(part)) for part in self._files}
            if self._elements is None:
                self._elements = self._drawn(screenshots)
            for element in self._elements[start:end]:
                place = f"{element.place}, screenshot {element.image}"
                image = checked_image(screenshots[element.part].read(element.image), place)
                yield source_question(
                    self._prompt(element.instruction),
                    box_text(element.box, self._settings.scale),
                    element.part,
                    (image,),
                    place,
                )

    def _screenshots(self, part: str) -> StoredFiles:
        return StoredFiles(self._files[part].folder, self._settings.parts[part].images)

    def _prompt(self, instruction: str) -> str:
        prompt = self._settings.prompt.replace("{scale}", str(self._settings.scale))
        return prompt.replace("{instruction}", instruction)

    def _drawn(self, screenshots: Mapping[str, StoredFiles]) -> list[_Element]:
        """The elements of smallest rank, in that order; equal elements once."""
        wanted = sum(self._settings.sizes.values())
        heap: list[tuple[int, _Element]] = []
        ranks: set[int] = set()
        for part in self._files:
            for element in self._usable(part, screenshots[part]):
                if element.rank in ranks or (len(heap) == wanted and element.rank > -heap[0][0]):
                    continue
                ranks.add(element.rank)
                if len(heap) < wanted:
                    heapq.heappush(heap, (-element.rank, element))
                else:
                    ranks.discard(-heapq.heappushpop(heap, (-element.rank, element))[0])
        return sorted(element for _, element in heap)

    def _usable(self, part: str, screenshots: StoredFiles) -> Iterator[_Element]:
        """The elements of one annotation file that can be asked for; the others are counted in the notes."""
        n_elements, left_out = 0, dict[str, int]()
        for place, image, instruction, box in _annotated(self._files[part]):
            n_elements += 1
            reason = _unusable(instruction, box, self._settings.scale)
            if reason is None and image not in screenshots:
                reason = "screenshot not in the archives"
            if reason is not None:
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            text = instruction.strip()
            rank = _rank(self._settings.seed, part, image, text, box)
            yield _Element(rank, part, image, text, box, place)
        self._notes["elements"][part] = n_elements
        self._notes["left_out"][part] = left_out


def box_text(box: Box, scale: int) -> str:
    """A box in shares as `[left, top, right, bottom]`, whole numbers from 0 to `scale`."""
    return str([round(share * scale) for share in box])


def _annotated(files: SourceFiles) -> Iterator[tuple[str, str, str, Box]]:
    """(place, screenshot, instruction, box) of every element. Raises DataError naming a malformed item."""
    for path in files.paths:
        name = path.relative_to(files.folder).as_posix()
        for number, item in enumerate(array_items(path)):
            place = f"{name}, item {number}"
            elements = item.get("elements", [item]) if isinstance(item, dict) else None
            if not isinstance(elements, list) or not isinstance(item.get("img_filename"), str):
                raise DataError(f"{place}: no object with img_filename and elements; fetch the file again")
            for element in elements:
                yield place, item["img_filename"], *_instruction_and_box(element, place)


def _instruction_and_box(element: Any, place: str) -> tuple[str, Box]:
    try:
        instruction, (left, top, right, bottom) = element["instruction"], element["bbox"]
        if not isinstance(instruction, str):
            raise TypeError(f"instruction is {instruction!r}")
        return instruction, (float(left), float(top), float(right), float(bottom))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{place}: {element!r:.200} has no text `instruction` and `bbox` of four numbers ({error}); "
            "fetch the file again"
        ) from error


def _unusable(instruction: str, box: Box, scale: int) -> str | None:
    """Why an element can't be asked for; None when it can."""
    if not instruction.strip():
        return "no instruction"
    if IMAGE_MARK in instruction:
        return f"{IMAGE_MARK} in the instruction"
    if not all(math.isfinite(share) and 0 <= share <= 1 for share in box):
        return "box outside the screenshot"
    left, top, right, bottom = (round(share * scale) for share in box)
    return None if left < right and top < bottom else "box without an area"


def _rank(seed: int, *content: object) -> int:
    return int.from_bytes(hashlib.sha256(repr((seed, *content)).encode()).digest()[:16])
