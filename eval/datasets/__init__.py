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
from typing import TYPE_CHECKING, Any

from fastrl.rollouts import Question

if TYPE_CHECKING:
    from eval.datasets.public import DataFiles

DATASETS: dict[str, str] = {
    "geometry3k": "eval.datasets.prepared",
    "geoqa8k_r1v": "eval.datasets.prepared",
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


def split_record(questions: Sequence[Question]) -> dict[str, Any]:
    """What a run's provenance says of a split: how many questions, and their digest."""
    return {"questions": len(questions), "digest": dataset_digest(questions)}


def dataset_digest(questions: Sequence[Question]) -> str:
    """sha256 (hex) over every field of every question, in order: equal digests, equal data."""
    digest = hashlib.sha256()
    for question in questions:
        fields = [getattr(question, field.name) for field in dataclasses.fields(question)]
        digest.update(json.dumps(fields, ensure_ascii=True, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
