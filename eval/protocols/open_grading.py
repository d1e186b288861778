"""Verdicts of benchmarks whose answers are open: the gold answer and the extraction, where there is one."""

from __future__ import annotations

from collections.abc import Sequence

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
