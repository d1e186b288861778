"""Preparing a training set: its source is read once, checked, and written as parquet with a data card."""

from __future__ import annotations

import fcntl
import importlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.datasets.records import DataError
from eval.preparation import PREPARATIONS
from eval.preparation.base import SourceQuestion, SourceSplits
from eval.preparation.data_card import CARD_FILE, CARD_PAGE, card_json, card_page
from eval.preparation.parquet_file import QuestionIds, WrittenSplit, write_questions
from eval.preparation.settings import PreparationSettings
from eval.preparation.source_files import file_digest

if TYPE_CHECKING:
    from eval.datasets.settings import LaptopFiguresSettings

_DRAFTS = ".draft"
_LOCK = ".lock"


def prepare(
    settings: PreparationSettings | LaptopFiguresSettings, source: Path | None, target: Path
) -> dict[str, Any]:
    """Write `<split>.parquet` for every split, and the data card, into `target`; returns the card.

    source: a folder in hub layout, None for the hub. Everything is written beside the target's files first
    and moved over them once it is whole and of the right size, the card last: a folder with a card is
    complete, and a killed preparation is simply run again. Raises DataError for a source that is missing,
    damaged or of another size, and for a target in use; OSError for a disk that is full.
    """
    splits: SourceSplits = importlib.import_module(PREPARATIONS[settings.source]).source_splits(
        settings, source
    )
    with _only_writer(target):
        drafts = target / _DRAFTS
        shutil.rmtree(drafts, ignore_errors=True)  # of a preparation that was killed
        drafts.mkdir()
        try:
            card = _written(settings, splits, drafts)
            _move_into_place(drafts, target, [facts["file"] for facts in card["splits"].values()])
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
    return card


def read_card(folder: Path) -> dict[str, Any] | None:
    """The data card of a prepared folder; None when there is none. Raises DataError for a damaged one."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(f"{folder / CARD_FILE} is damaged: {error}; prepare the set again") from error
    return card


def _written(
    settings: PreparationSettings | LaptopFiguresSettings, splits: SourceSplits, drafts: Path
) -> dict[str, Any]:
    """Write all files into the drafts folder; returns the card."""
    ids = QuestionIds(settings.name)
    facts: dict[str, dict[str, Any]] = {}
    for split, size in splits.sizes.items():
        path = drafts / f"{split}.parquet"
        questions = _counted(splits.questions[split], size, settings.name, split)
        facts[split] = _split_facts(path, write_questions(path, questions, ids, splits.has_images))
    card = {
        "schema": 1,
        "name": settings.name,
        "label": settings.label,
        "licence": settings.licence,
        "questions": sum(split["questions"] for split in facts.values()),
        "splits": facts,
        "sources": [files.facts() for files in splits.files],
        "notes": dict(splits.notes),
    }
    (drafts / CARD_FILE).write_text(card_json(card), encoding="utf-8")
    (drafts / CARD_PAGE).write_text(card_page(card), encoding="utf-8")
    return card


def _counted(
    questions: Iterator[SourceQuestion], size: int, name: str, split: str
) -> Iterator[SourceQuestion]:
    """The questions. Raises DataError at the end when there are not `size` of them."""
    number = 0
    for question in questions:
        yield question
        number += 1
    if number != size:
        raise DataError(
            f"{name}: the split {split} has {number:,} questions where {size:,} are expected; fetch the "
            "whole set again, or set the number in the data set's YAML when another revision is meant"
        )


def _split_facts(path: Path, written: WrittenSplit) -> dict[str, Any]:
    return {
        "file": path.name,
        "questions": written.rows,
        "images": written.images,
        "image_bytes": written.image_bytes,
        "repeated": written.repeated,
        "bytes": path.stat().st_size,
        "sha256": file_digest(path),
    }


def _move_into_place(drafts: Path, target: Path, files: list[str]) -> None:
    """Put the drafts into the target, the card last; files of splits that the old card alone names go."""
    with suppress(DataError):
        old: Mapping[str, Any] = read_card(target) or {"splits": {}}
        for facts in old["splits"].values():
            if facts["file"] not in files:
                (target / facts["file"]).unlink(missing_ok=True)
    (target / CARD_FILE).unlink(missing_ok=True)
    for name in (*files, CARD_PAGE, CARD_FILE):
        (drafts / name).replace(target / name)


@contextmanager
def _only_writer(target: Path) -> Iterator[None]:
    """Hold the target's lock, which ends with the process. Raises DataError when another process has it."""
    target.mkdir(parents=True, exist_ok=True)
    with (target / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataError(
                f"{target} is being prepared by another process; wait for it, or choose another --to"
            ) from error
        yield
