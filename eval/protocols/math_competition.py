"""MATH and MATH-500: open answers in a box, compared by the open-answer grader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eval.extraction.boxed import gold_answer
from eval.protocols.base import BenchmarkQuestion
from eval.protocols.open_grading import OpenAnswers
from eval.protocols.record_fields import content_ids, text_field

INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."


class MathCompetition(OpenAnswers):
    """Labels: subject and level ("1" to "5", and "?" in the few records of MATH without one).

    Records of a prepared set name their subject `family` and have no level.
    """

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        """Fields `problem`; `answer`, or `solution` with a box; `subject`, `type` or `family`; `level`."""
        records = list(records)
        names = [f"MATH record {_given_id(record, f'number {n}')!r}" for n, record in enumerate(records, 1)]
        problems = [text_field(record, "problem", name) for record, name in zip(records, names, strict=True)]
        answers = [_gold(record, name) for record, name in zip(records, names, strict=True)]
        made = content_ids(
            "math", [(problem.strip(), gold) for problem, gold in zip(problems, answers, strict=True)]
        )
        return [
            BenchmarkQuestion(
                id=_given_id(record, made[index]),
                prompt=f"{problems[index]}\n{INSTRUCTION}",
                answer=answers[index],
                images=(),
                labels=_labels(record, names[index]),
                details={},
            )
            for index, record in enumerate(records)
        ]


def _given_id(record: Mapping[str, Any], otherwise: str) -> str:
    return str(record.get("unique_id", record.get("question_id", otherwise)))


def _gold(record: Mapping[str, Any], where: str) -> str:
    if "answer" in record:
        return text_field(record, "answer", where).strip()
    gold = gold_answer(text_field(record, "solution", where))
    if gold is None:
        raise ValueError(f"{where}: there is no field 'answer', and no \\boxed{{}} in its 'solution'")
    return gold


def _labels(record: Mapping[str, Any], where: str) -> dict[str, tuple[str, ...]]:
    """Raises ValueError for a record with neither a subject nor, unless it is of a prepared set, a level."""
    if "family" in record:
        return {"subject": (text_field(record, "family", where),)}
    subject = text_field(record, "subject" if "subject" in record else "type", where)
    level = text_field(record, "level", where).removeprefix("Level").strip()
    return {"subject": (subject,), "level": (level,)}
