"""Functions of the lm-eval tasks laptop_geometry and laptop_geometry_ood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eval.datasets import load_questions
from eval.extraction.boxed import boxed_integer
from eval.lm_eval_task import Verdict, documents, sample_metrics
from eval.rewards.boxed_accuracy_format import BoxedAccuracyFormat
from fastrl.rollouts import Question

if TYPE_CHECKING:
    from datasets import Dataset

GRADER = BoxedAccuracyFormat(format_weight=0.0)
"""The reward of training: its accuracy is the benchmark's verdict. The weight bears on its total alone."""


def load(dataset: Mapping[str, Any], splits: Sequence[str], **_: Any) -> dict[str, Dataset]:
    """The documents of each split of a data-set config; lm-eval adds keywords of its own."""
    return {split: documents(load_questions(dataset, split), None) for split in splits}


def grade(question: Question, response: str) -> Verdict:
    """The verdict of the reward that trains the policy."""
    (reward,) = GRADER([question], [response])
    return Verdict(
        extracted=boxed_integer(response),
        correct=reward.accuracy == 1.0,
        formatted=reward.format == 1.0,
        undecided=False,
    )


def process_results(document: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
    """lm-eval's hook: the metrics of one document's samples."""
    return sample_metrics(document, results, grade)
