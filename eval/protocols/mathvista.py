"""MathVista: the official prompt and scoring; the official LLM extractor is replaced by rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.protocols.base import BenchmarkQuestion, EqualAnswers
from eval.protocols.mathvista_extraction import extract_answer
from eval.protocols.mathvista_scoring import predicted_answer
from eval.protocols.record_fields import images_field, text_field

QUESTION_TYPES = ("multi_choice", "free_form")
ANSWER_TYPES = ("text", "integer", "float", "list")

_CHOICE_HINT = (
    "Hint: Please answer the question and provide the correct option letter, e.g., A, B, C, D, at the end."
)
_FREE_FORM_HINT = (
    "Hint: Please answer the question requiring {} and provide the final {}, e.g., {}, at the end."
)
_FREE_FORM_HINTS = {
    ("integer", None): ("an integer answer", "value", "1, 2, 3"),
    ("float", 1): ("a floating-point number with one decimal place", "value", "1.2, 1.3, 1.4"),
    ("float", 2): ("a floating-point number with two decimal places", "value", "1.23, 1.34, 1.45"),
    ("list", None): ("a Python list as an answer", "list", "[1, 2, 3], [1.2, 1.3, 1.4]"),
}
_METADATA_LABELS = ("language", "source", "category", "task", "context", "grade")


class MathVista:
    """The protocol of the testmini (1,000) split; other splits have the same fields but no public answers.

    Rules: `current` reads an integer as `int(float(x))`; `paper` as `int(x)`, so that "3.0" fails, like the
    scoring that the paper's own result files were made with.
    """

    rules = ("current", "paper")

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        return [
            _question(record, f"MathVista record number {number}") for number, record in enumerate(records, 1)
        ]

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """A letter, a number, a list, or the answer as stated when it is none of the choices."""
        return extract_answer(question, response)

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """Whether the answer that the official normalisation makes of an extraction is the gold one."""
        return [
            extraction is not None and predicted_answer(question, extraction, rule) == question.answer
            for question, extraction in zip(questions, extractions, strict=True)
        ]

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        return {}


def _question(record: Mapping[str, Any], where: str) -> BenchmarkQuestion:
    pid = text_field(record, "pid", where)
    where = f"MathVista record {pid!r}"
    question_type = _one_of(record, "question_type", QUESTION_TYPES, where)
    answer_type = _one_of(record, "answer_type", ANSWER_TYPES, where)
    choices = _choices(record, question_type, where)
    precision = record.get("precision")
    precision = None if precision is None else int(float(text_field(record, "precision", where)))
    if not choices and (answer_type, precision) not in _FREE_FORM_HINTS:
        raise ValueError(f"{where}: no prompt for answer_type {answer_type!r} with precision {precision!r}")
    text = text_field(record, "question", where)
    return BenchmarkQuestion(
        id=pid,
        prompt="\n".join(["<image>", *_query(record, text, choices, answer_type, precision)]),
        answer=text_field(record, "answer", where),
        images=images_field(record, "image", where)[:1],
        labels={
            "question_type": (question_type,),
            "answer_type": (answer_type,),
            **_metadata_labels(record, where),
        },
        details={
            "question": text,
            "choices": choices,
            "answer_type": answer_type,
            "precision": precision,
        },
    )


def _query(
    record: Mapping[str, Any], text: str, choices: Sequence[str], answer_type: str, precision: int | None
) -> list[str]:
    """The lines of the official query: hint, question with its unit, choices."""
    unit = record.get("unit")
    question = f"Question: {text} (Unit: {unit})" if unit else f"Question: {text}"
    if choices:
        lettered = [f"({chr(ord('A') + index)}) {choice}" for index, choice in enumerate(choices)]
        return [_CHOICE_HINT, question, "Choices:", *lettered]
    return [_FREE_FORM_HINT.format(*_FREE_FORM_HINTS[answer_type, precision]), question]


def _choices(record: Mapping[str, Any], question_type: str, where: str) -> list[str]:
    choices = record.get("choices")
    if question_type == "free_form":
        return []
    if not isinstance(choices, list) or not choices or not all(isinstance(each, str) for each in choices):
        raise ValueError(f"{where}: field 'choices' is {choices!r}, but should be a list of texts")
    return choices


def _metadata_labels(record: Mapping[str, Any], where: str) -> dict[str, tuple[str, ...]]:
    metadata = record.get("metadata")
    if not isinstance(metadata, Mapping):
        raise ValueError(f"{where}: field 'metadata' is {metadata!r}, but should be an object")
    skills = metadata.get("skills")
    if not isinstance(skills, list) or not all(isinstance(skill, str) for skill in skills):
        raise ValueError(f"{where}: metadata field 'skills' is {skills!r}, but should be a list of texts")
    one = {name: (text_field(metadata, name, f"{where}, metadata"),) for name in _METADATA_LABELS}
    return {**one, "skills": tuple(skills)}


def _one_of(record: Mapping[str, Any], name: str, known: Sequence[str], where: str) -> str:
    value = text_field(record, name, where)
    if value not in known:
        raise ValueError(f"{where}: field {name!r} is {value!r}, but should be one of {', '.join(known)}")
    return value
