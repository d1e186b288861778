"""Verdicts of benchmarks whose answers are open: the gold answer and the extraction, where there is one."""

from __future__ import annotations

from collections.abc import Sequence

from eval.extraction.final_answer import final_answer
from eval.protocols.base import BenchmarkQuestion, EqualAnswers


def grade_open_answers(
    questions: Sequence[BenchmarkQuestion], extractions: Sequence[str | None], equal: EqualAnswers
) -> list[bool | None]:
    """Whether each extraction equals the gold answer, in one call of `equal`; False without an extraction."""
    present = [
        (question.answer, extraction)
        for question, extraction in zip(questions, extractions, strict=True)
        if extraction is not None
    ]
    verdicts = iter(equal(present))
    return [extraction is not None and next(verdicts) for extraction in extractions]


class OpenAnswers:
    """The part of a protocol that benchmarks of open answers without further scores have in common."""

    rules: tuple[str, ...] = ("current",)

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The last box, else the last <answer>, else what "the answer is" states."""
        return final_answer(response)

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        return grade_open_answers(questions, extractions, equal)

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        return {}
