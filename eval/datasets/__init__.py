"""Data sets: questions with gold answers.

A data set is a module with `questions(config, split) -> list[Question]`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastrl.rollouts import Question

DATASETS: dict[str, str] = {
    "laptop_geometry": "eval.datasets.laptop_geometry",
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


def dataset_digest(questions: Sequence[Question]) -> str:
    """sha256 (hex) over every field of every question, in order: equal digests, equal data."""
    digest = hashlib.sha256()
    for question in questions:
        fields = [question.id, question.prompt, question.answer, question.family]
        digest.update(json.dumps(fields, ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()
