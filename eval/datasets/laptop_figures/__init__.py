"""Synthetic geometry problems in figures, small enough to train on with a laptop: see `questions`.

What they look like is in `layouts` and `out_of_domain_layouts`; they are kept as parquet files, drawn when
they are first asked for, which EasyR1 reads too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.datasets.laptop_geometry.splits import SPLITS
from eval.datasets.records import DataError
from eval.datasets.settings import LaptopFiguresSettings, LaptopGeometrySplits
from fastrl.rollouts import Question

SHUFFLED = "shuffled"
"""The validation questions with each other's images: what a policy knows that does not look."""

_DRAWING_VERSION = 1
"""Part of the folder's name: raise it when the same settings give other figures, texts or splits."""


def questions(config: Mapping[str, Any], split: str) -> list[Question]:
    """The questions of one split of a config (`LaptopFiguresSettings` as a mapping), in a fixed order.

    The set is drawn first when it is not there. Raises ValueError for an unknown split, and for one that asks
    for more questions than there are; OSError when the folder cannot be written.
    """
    from eval.datasets.prepared import pictured_questions

    folder = prepared_folder(config)
    drawn = "validation" if split == SHUFFLED else split
    try:
        asked = pictured_questions(config, folder, drawn)
    except DataError as error:
        if drawn not in SPLITS:
            raise
        reason = str(error).removesuffix("; fetch it again")
        raise DataError(f"{reason}; delete {folder}, and it is drawn anew") from error
    return _with_images_of_others(asked) if split == SHUFFLED else asked


def prepared_folder(config: Mapping[str, Any]) -> Path:
    """The folder of the set's parquet files and data card, drawn if need be.

    It is named by the settings that decide what is in it. Of several processes one draws and the others wait.
    """
    from eval.preparation.data_card import CARD_FILE
    from eval.preparation.prepare import prepare

    folder = folder_of(config)
    if (folder / CARD_FILE).is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / CARD_FILE).is_file():
            prepare(_settings(config), None, folder)
    return folder


def folder_of(config: Mapping[str, Any]) -> Path:
    """Where the set of a config is kept, whether it is there or not."""
    key = json.dumps([_DRAWING_VERSION, config["splits"]], sort_keys=True)
    return Path(config["root"]).expanduser() / hashlib.sha256(key.encode()).hexdigest()[:10]


def _settings(config: Mapping[str, Any]) -> LaptopFiguresSettings:
    return LaptopFiguresSettings(**{**config, "splits": LaptopGeometrySplits.from_mapping(config["splits"])})


def _with_images_of_others(asked: Sequence[Question]) -> list[Question]:
    """Each question with the image of one that asks the same and has another answer."""
    rng = random.Random(len(asked))
    shuffled = []
    for question in asked:
        others = [each for each in asked if each.answer != question.answer]
        alike = [each for each in others if each.prompt == question.prompt]
        if not others:
            raise ValueError("all questions have the same answer, so there is no other's image to show")
        shuffled.append(replace(question, images=rng.choice(alike or others).images))
    return shuffled
