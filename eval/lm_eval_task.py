"""What our generation tasks tell lm-eval: their documents, and the metrics of one document's samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.pass_at_k import pass_at_k
from fastrl.rollouts import Question

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class Verdict:
    """What a task finds in a response.

    extracted: the answer in it, None when there is none. correct: it is right. formatted: the response has
    the form that the benchmark asks for, None where it asks for none.
    """

    extracted: str | None
    correct: bool
    formatted: bool | None


def documents(questions: Sequence[Question]) -> Dataset:
    """The questions as lm-eval's documents, with the fields of `Question`."""
    from datasets import Dataset

    return Dataset.from_list([dataclasses.asdict(question) for question in questions])


def sample_metrics(
    document: Mapping[str, Any], results: Sequence[Any], grade: Callable[[Question, str], Verdict]
) -> dict[str, Any]:
    """What a task's `process_results` returns: the document's metrics over its samples, and every sample.

    document: one of `documents`. results: what lm-eval passes, an entry per request of the document; we
    make one request, so one entry, the list of its n responses (`repeats`).

    `accuracy`, and `pass_at_k` for the powers of two up to n, are for lm-eval's own table. `samples` holds
    a dict per response, in order: `response`, `tokens` and `truncated` (None where the model does not say),
    and the fields of `Verdict`. Raises ValueError when lm-eval has thrown samples away, as its default
    filter does.
    """
    (responses,) = results
    if isinstance(responses, str):
        raise ValueError(
            "lm-eval kept only the first sample of a question; give the task "
            "filter_list: [{name: all, filter: [{function: take_first_k, k: <repeats>}]}]"
        )
    question = Question(**{field.name: document[field.name] for field in dataclasses.fields(Question)})
    samples = [{**_generated(response), **vars(grade(question, response))} for response in responses]
    n = len(samples)
    n_correct = np.array([sum(sample["correct"] for sample in samples)])
    pass_k = [2**power for power in range(1, n.bit_length())]
    return {
        "accuracy": float(n_correct[0]) / n,
        **{f"pass_at_{k}": float(pass_at_k(n_correct, n, k)[0]) for k in pass_k},
        "samples": samples,
    }


def count_samples(samples: Sequence[Sequence[Any]]) -> int:
    """lm-eval's aggregation of the metric `samples`: how many responses were graded, over all documents."""
    return sum(map(len, samples))


def _generated(response: str) -> dict[str, Any]:
    return {
        "response": str(response),
        "tokens": getattr(response, "tokens", None),
        "truncated": getattr(response, "truncated", None),
    }
