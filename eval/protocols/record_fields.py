"""Fields of official records, checked: what is missing or malformed is named with its record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eval.datasets.content_digest import content_digest

THINK_THEN_BOX = "Reason first, inside <think> </think> tags, then give the final answer in \\boxed{}."
"""Instruction of the prompts whose reward asks for <think>...</think> and a box after it."""


def text_field(record: Mapping[str, Any], name: str, where: str) -> str:
    """A field that holds text or a number, as text. where: names the record in errors.

    Raises ValueError when the field is missing, empty or something else.
    """
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{where}: field {name!r} is {value!r}, but should be text")
    text = str(value)
    if not text.strip():
        raise ValueError(f"{where}: field {name!r} is empty")
    return text


def images_field(record: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A field that holds a reference to an image, or a list of them. Raises ValueError for anything else."""
    value = record.get(name)
    references = [value] if isinstance(value, str) else value
    if (
        not isinstance(references, list | tuple)
        or not references
        or not all(isinstance(each, str) and each for each in references)
    ):
        raise ValueError(f"{where}: field {name!r} is {value!r}, but should name images")
    return tuple(references)


def content_ids(prefix: str, contents: Iterable[tuple[str, ...]]) -> list[str]:
    """Ids of questions that have none: a digest of what tells them apart, numbered where it occurs again.

    (problem, answer) gives the id that `fastrl data prepare` writes for a question without images.
    """
    seen: dict[str, int] = {}
    ids = []
    for parts in contents:
        digest = content_digest(part.encode() for part in parts)
        seen[digest] = seen.get(digest, 0) + 1
        ids.append(f"{prefix}-{digest}" + (f"-{seen[digest]}" if seen[digest] > 1 else ""))
    return ids
