"""MathVerse: exact match with normalised gold answers; what needs a judge stays undecided."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from eval.extraction.boxed import last_boxed
from eval.extraction.choices import LETTERS, comparable, stated_choice
from eval.extraction.stated_answers import plain_text, sentences, stated_answers
from eval.protocols.base import BenchmarkQuestion, EqualAnswers
from eval.protocols.record_fields import images_field, text_field

VERSIONS = ("Text Dominant", "Text Lite", "Vision Intensive", "Vision Dominant", "Vision Only")
"""The versions that the overall score is the mean of."""
TEXT_ONLY = "Text Only"
MULTIPLE_CHOICE = "multi-choice"
METADATA_LABELS = ("subject", "subfield", "source")
UNLISTED_LETTERS = "ABCDEFGH"
"""Letters that an answer can have where the choices are in the image only."""
LONGEST_STATEMENT = 200

_CHOICES_HEADING = re.compile(r"\n\s*Choices?\s*:\s*\n", re.IGNORECASE)
_CHOICE = re.compile(r"([A-Z])\s*[.:：)]\s*(.*)")
_LETTER = re.compile(r"\(?\s*([A-Z])\s*\)?\s*\.?")
_MIS_ENCODED_DEGREES = ("掳", "º", "˚", "Â°")
_SPACING = re.compile(r"\\(?:,|;|:|!|quad|qquad| )|~|\s+")
_ASSIGNED = re.compile(r"[a-z][a-z ]{0,30}=")


class MathVerse:
    """The protocol of testmini: 788 problems in five versions with images, and Text Only."""

    rules = ("current",)

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        return [
            _question(record, f"MathVerse record number {number}") for number, record in enumerate(records, 1)
        ]

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The letter of a stated choice; for free-form answers the last box, else what is stated."""
        choices = question.details["choices"]
        if choices:
            return stated_choice(response, choices, question.details["question"])
        box = last_boxed(response)
        if box is not None:
            return box.strip() or None
        text = plain_text(response)
        stated = stated_answers(text)[:1] or ([text] if len(text) <= LONGEST_STATEMENT else [])
        sentence = next((sentence for part in stated for sentence in sentences(part)), "")
        return sentence.rstrip(".").strip() or None

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """A letter is right or wrong. Another answer is right when it is the gold one, else undecided."""
        return [
            False if extraction is None or not extraction.strip() else _verdict(question, extraction)
            for question, extraction in zip(questions, extractions, strict=True)
        ]

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        """`accuracy_of_versions`: the mean over the five versions with images, when all are there."""
        by_version = defaultdict[str, list[bool]](list)
        for question, right in zip(questions, correct, strict=True):
            by_version[question.labels["problem_version"][0]].append(right)
        if any(version not in by_version for version in VERSIONS):
            return {}
        return {"accuracy_of_versions": fmean(fmean(by_version[version]) for version in VERSIONS)}


def normalised(answer: str) -> str:
    """An answer as it is compared: without spacing, dollar signs and degree signs, mis-encoded ones too.

    A quantity's name before an equals sign ("Area =") is dropped.
    """
    for degrees in _MIS_ENCODED_DEGREES:
        answer = answer.replace(degrees, "°")
    answer = comparable(plain_text(answer))
    answer = answer[named.end() :] if (named := _ASSIGNED.match(answer)) else answer
    return _SPACING.sub("", answer).strip(".")


def gold_letters(answer: str, choices: Sequence[str]) -> tuple[str, ...]:
    """The letters of a gold answer: "C", "(C)", several lines of letters, or the text of a choice."""
    letters = [_LETTER.fullmatch(line.strip()) for line in answer.splitlines() if line.strip()]
    if all(letters):
        return tuple(letter[1] for letter in letters if letter)
    return tuple(
        letter
        for letter, choice in zip(LETTERS, choices, strict=False)
        if normalised(choice) == normalised(answer)
    )


def _verdict(question: BenchmarkQuestion, extraction: str) -> bool | None:
    choices = question.details["choices"]
    if not choices:
        return True if normalised(extraction) == normalised(question.answer) else None
    letter = stated_choice(extraction, choices)
    golds = gold_letters(question.answer, choices)
    if letter is None or not golds or (len(golds) > 1 and letter in golds):
        return None
    return letter in golds


def _question(record: Mapping[str, Any], where: str) -> BenchmarkQuestion:
    problem = text_field(record, "problem_index", where)
    version = text_field(record, "problem_version", where)
    where = f"MathVerse problem {problem!r}, {version}"
    if version not in (*VERSIONS, TEXT_ONLY):
        known = ", ".join((*VERSIONS, TEXT_ONLY))
        raise ValueError(f"{where}: problem_version {version!r} is none of {known}")
    metadata = record.get("metadata")
    if not isinstance(metadata, Mapping):
        raise ValueError(f"{where}: field 'metadata' is {metadata!r}, but should be an object")
    question_type = text_field(record, "question_type", where)
    prompt = text_field(record, "query_cot", where)
    text = record.get("question") or ""
    pictured = version != TEXT_ONLY
    fields = {name: (text_field(metadata, name, f"{where}, metadata"),) for name in METADATA_LABELS}
    return BenchmarkQuestion(
        id=f"{problem}/{version}",
        prompt=f"<image>\n{prompt}" if pictured else prompt,
        answer=text_field(record, "answer", where),
        images=images_field(record, "image", where)[:1] if pictured else (),
        labels={"problem_version": (version,), "question_type": (question_type,), **fields},
        details={
            "question": text,
            "choices": _choices(text) if question_type == MULTIPLE_CHOICE else [],
        },
    )


def _choices(text: str) -> list[str]:
    """The texts of the choices under "Choices:", in the order of their letters; "" for each when unlisted."""
    heading = _CHOICES_HEADING.search(text)
    lines = text[heading.end() :].splitlines() if heading else []
    listed = {match[1]: match[2].strip() for match in map(_CHOICE.match, map(str.strip, lines)) if match}
    last = LETTERS.index(max(listed)) + 1 if listed else len(UNLISTED_LETTERS)
    return [listed.get(letter, "") for letter in LETTERS[:last]]
