"""Data sets: questions with gold answers.

A data set is a module with `questions(config, split) -> list[Question]`; one that is read from files has
`data_files(config, split, questions) -> DataFiles` too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastrl.rollouts import Question

if TYPE_CHECKING:
    from eval.datasets.public import DataFiles

DATASETS: dict[str, str] = {
    "geometry3k": "eval.datasets.prepared",
    "geoqa8k_r1v": "eval.datasets.prepared",
    "laptop_figures": "eval.datasets.laptop_figures",
    "laptop_geometry": "eval.datasets.laptop_geometry",
    "math": "eval.datasets.prepared",
    "os_atlas": "eval.datasets.prepared",
    "public": "eval.datasets.public",
}
"""`source` of a data-set config -> the module that makes its questions, imported when it is used."""


def load_questions(dataset_config: Mapping[str, Any], split: str) -> list[Question]:
    """The questions of one split of a config (`DatasetSettings` as a mapping), always in the same order.

    Raises ValueError for an unknown source or split, an empty split, and ids that occur twice.
    """
    source = dataset_config["source"]
    if source not in DATASETS:
        raise ValueError(f"unknown data set source {source!r}; known: {', '.join(sorted(DATASETS))}")
    questions: list[Question] = importlib.import_module(DATASETS[source]).questions(dataset_config, split)
    name = dataset_config["name"]
    if not questions:
        raise ValueError(f"data set {name!r}: split {split!r} is empty; set its size to at least 1")
    if len({question.id for question in questions}) < len(questions):
        raise ValueError(f"data set {name!r}: split {split!r} holds a question id twice; ids must be unique")
    return questions


def files_of(
    dataset_config: Mapping[str, Any], split: str, questions: Sequence[Question]
) -> DataFiles | None:
    """The files behind the questions that `load_questions` returned; None for a generated data set."""
    module = importlib.import_module(DATASETS[dataset_config["source"]])
    if not hasattr(module, "data_files"):
        return None
    files: DataFiles = module.data_files(dataset_config, split, questions)
    return files


def parquet_folder(dataset_config: Mapping[str, Any]) -> Path | None:
    """Where the parquet files of a set are, or will be, in the schema that EasyR1 reads; None without any."""
    module = importlib.import_module(DATASETS[dataset_config["source"]])
    return module.folder_of(dataset_config) if hasattr(module, "folder_of") else None


def make_if_generated(dataset_config: Mapping[str, Any]) -> None:
    """Write the parquet files of a set that is drawn here, unless they are there already."""
    module = importlib.import_module(DATASETS[dataset_config["source"]])
    if hasattr(module, "prepared_folder"):
        module.prepared_folder(dataset_config)


def split_record(questions: Sequence[Question]) -> dict[str, Any]:
    """What a run's provenance says of a split: how many questions, and their digest."""
    return {"questions": len(questions), "digest": dataset_digest(questions)}


def dataset_digest(questions: Sequence[Question]) -> str:
    """sha256 (hex) over every field of every question, in order: equal digests, equal data.

    Of an image its file counts, or its pixels where it has none; of a benchmark's images their places do,
    whose files have a digest of their own.
    """
    digest = hashlib.sha256()
    for question in questions:
        names = [field.name for field in dataclasses.fields(question)]
        if type(question) is Question and not question.images:
            names.remove("images")
        fields = [getattr(question, name) for name in names]
        digest.update(json.dumps(fields, default=_image_digest, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def _image_digest(image: Any) -> str:
    from eval.datasets.images import LazyImage, image_bytes

    if isinstance(image, LazyImage):
        return hashlib.sha256(image_bytes(image.source)).hexdigest()
    return hashlib.sha256(f"{image.mode}{image.size}".encode() + image.tobytes()).hexdigest()
