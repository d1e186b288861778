"""What our generation tasks tell lm-eval: their documents, and the metrics of one document's samples."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.datasets.records import located
from eval.pass_at_k import pass_at_k
from eval.protocols.base import BenchmarkQuestion
from fastrl.rollouts import Question

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class Verdict:
    """What a task finds in a response.

    extracted: the answer in it, None when there is none. correct: it is right. formatted: the response has
    the form that the benchmark asks for, None where it asks for none. undecided: only a judge could tell
    whether it is right; such a response is not correct.
    """

    extracted: str | None
    correct: bool
    formatted: bool | None
    undecided: bool

    def __post_init__(self) -> None:
        if self.correct and self.undecided:
            raise ValueError("a verdict is either right or undecided, not both")


def documents(questions: Sequence[Question], folder: Path | None) -> Dataset:
    """The questions as lm-eval's documents, with the fields of `Question`, or of `BenchmarkQuestion`.

    folder: where a benchmark question's references to images start, None for questions without; other images
    (`eval.datasets.images.LazyImage`) know their place. Labels and details are JSON texts, since their keys
    differ from question to question.
    """
    from datasets import Dataset

    return Dataset.from_list([_document(question, folder) for question in questions])


def question_of(document: Mapping[str, Any]) -> Question:
    """The question of one of `documents`, for grading: images are left out, or are places. Raises KeyError
    for a missing field."""
    if "details" not in document:
        names = [field.name for field in dataclasses.fields(Question) if field.name != "images"]
        return Question(**{name: document[name] for name in names})
    fields = {field.name: document[field.name] for field in dataclasses.fields(BenchmarkQuestion)}
    labels = json.loads(document["labels"])
    fields["labels"] = {name: tuple(values) for name, values in labels.items()}
    fields |= {"images": tuple(document["images"]), "details": json.loads(document["details"])}
    return BenchmarkQuestion(**fields)


def sample_metrics(
    document: Mapping[str, Any], results: Sequence[Any], grade: Callable[[Question, str], Verdict]
) -> dict[str, Any]:
    """What a task's `process_results` returns: the document's metrics over its samples, and every sample.

    document: one of `documents`. results: what lm-eval passes, an entry per request of the document; we
    make one request, so one entry, the list of its n responses (`repeats`).

    `accuracy`, `undecided`, and `pass_at_k` for the powers of two up to n, are for lm-eval's own table.
    `samples` holds a dict per response, in order: `response`, `tokens` and `truncated` (None where the model
    does not say), and the fields of `Verdict`. Raises ValueError when lm-eval has thrown samples away, as its
    default filter does.
    """
    (responses,) = results
    if isinstance(responses, str):
        raise ValueError(
            "lm-eval kept only the first sample of a question; give the task "
            "filter_list: [{name: all, filter: [{function: take_first_k, k: <repeats>}]}]"
        )
    question = question_of(document)
    samples = [{**_generated(response), **vars(grade(question, response))} for response in responses]
    n = len(samples)
    n_undecided = sum(sample["undecided"] for sample in samples)
    n_correct = np.array([sum(sample["correct"] for sample in samples)])
    pass_k = [2**power for power in range(1, n.bit_length())]
    return {
        "accuracy": float(n_correct[0]) / n,
        **{f"pass_at_{k}": float(pass_at_k(n_correct, n, k)[0]) for k in pass_k},
        "undecided": n_undecided / n,
        "samples": samples,
    }


def count_samples(samples: Sequence[Sequence[Any]]) -> int:
    """lm-eval's aggregation of the metric `samples`: how many responses were graded, over all documents."""
    return sum(map(len, samples))


def _document(question: Question, folder: Path | None) -> dict[str, Any]:
    fields = {field.name: getattr(question, field.name) for field in dataclasses.fields(question)}
    if isinstance(question, BenchmarkQuestion):
        if question.images and folder is None:
            raise ValueError(f"question {question.id!r} has images, but no data folder is given")
        images = [located(folder, reference) for reference in question.images] if folder else []
        labels = {name: list(values) for name, values in question.labels.items()}
        fields |= {"images": images, "labels": json.dumps(labels), "details": json.dumps(question.details)}
    else:
        fields["images"] = [image.source for image in question.images]
    return fields


def _generated(response: str) -> dict[str, Any]:
    return {
        "response": str(response),
        "tokens": getattr(response, "tokens", None),
        "truncated": getattr(response, "truncated", None),
    }
