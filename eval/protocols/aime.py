"""AIME 2024 and 2025: answers are the whole numbers 0 to 999."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.extraction.boxed import last_boxed, normalise_integer
from eval.extraction.final_answer import stated_answer, tagged_answer
from eval.protocols.base import BenchmarkQuestion, EqualAnswers
from eval.protocols.record_fields import content_ids, text_field

INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
LARGEST = 999

_NUMBER_FIRST = re.compile(r"\\?[\s$(*]*+([0-9]++)(?![0-9]|[.,][0-9])")


class Aime:
    """The protocol of both years; a prompt suffix in the problems of a mirror is dropped."""

    rules = ("current",)

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        """Fields `problem` and `answer`, and `id` where there is one."""
        records = list(records)
        problems = [
            _without_suffix(text_field(record, "problem", f"AIME record number {number}"))
            for number, record in enumerate(records, start=1)
        ]
        made = content_ids("aime", [(problem,) for problem in problems])
        return [
            BenchmarkQuestion(
                id=str(record.get("id", made[index])),
                prompt=f"{problems[index]}\n{INSTRUCTION}",
                answer=_gold(record, index + 1),
                images=(),
                labels={},
                details={},
            )
            for index, record in enumerate(records)
        ]

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The whole number in the last box, else in the last <answer>, else after "the answer is"."""
        box = last_boxed(response)
        if box is not None:
            return normalise_integer(box)
        tagged = tagged_answer(response)
        if tagged is not None:
            return normalise_integer(tagged)
        stated = stated_answer(response)
        number = None if stated is None else _NUMBER_FIRST.match(stated)
        return None if number is None else normalise_integer(number.group(1))

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """Whether the number is the gold one, leading zeros aside. Needs neither a judge nor `equal`."""
        return [
            extraction is not None and normalise_integer(extraction) == question.answer
            for question, extraction in zip(questions, extractions, strict=True)
        ]

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        return {}


def _without_suffix(problem: str) -> str:
    """The problem without a last line that asks for a box."""
    before, newline, last = problem.rstrip().rpartition("\n")
    return before.rstrip() if newline and "\\boxed{}" in last else problem.strip()


def _gold(record: Mapping[str, Any], number: int) -> str:
    where = f"AIME record number {number}"
    answer = normalise_integer(text_field(record, "answer", where))
    if answer is None or len(answer) > len(str(LARGEST)) or not 0 <= int(answer) <= LARGEST:
        raise ValueError(f"{where}: answer {record['answer']!r} is no whole number from 0 to {LARGEST}")
    return answer
