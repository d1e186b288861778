"""GeoQA8K-R1V, 754 test questions: R1-V's published scoring, and one by the stated answer alone.

R1-V gives math-verify the whole response; it has no extraction step. So the extraction here is the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.extraction.final_answer import final_answer
from eval.grading.open_answers import shared_grader
from eval.protocols.base import BenchmarkQuestion, EqualAnswers
from eval.protocols.open_grading import grade_open_answers
from eval.protocols.record_fields import THINK_THEN_BOX, content_ids, images_field, text_field


class Geoqa8kR1v:
    """Rules: `current`, math-verify on (gold, whole response), agrees with every published verdict; `stated`,
    the box, <answer> or "the answer is" by the open-answer grader.

    `current` is lenient where math-verify is: it takes 10 for `10√{2}`, and a number from the reasoning when
    it reads nothing after it. Train and compare methods by `stated`.
    """

    rules = ("current", "stated")

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        """Fields `image_path`, `question`, `ground_truth`; or, as sets for EasyR1 have them, `images`,
        `problem`, `answer`, and the `question_id` of a prepared set if any."""
        records = [_as_published(record) for record in records]
        names = [f"GeoQA8K-R1V record number {number}" for number in range(1, len(records) + 1)]
        texts = [text_field(record, "question", name) for record, name in zip(records, names, strict=True)]
        images = [
            images_field(record, "image_path", name) for record, name in zip(records, names, strict=True)
        ]
        made = content_ids("geoqa8k_r1v", [(text, *found) for text, found in zip(texts, images, strict=True)])
        return [
            BenchmarkQuestion(
                id=str(record.get("question_id", made[index])),
                prompt=f"<image>{texts[index]}\n{THINK_THEN_BOX}",
                answer=text_field(record, "ground_truth", names[index]),
                images=images[index],
                labels={},
                details={},
            )
            for index, record in enumerate(records)
        ]

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The whole response: the rules read it differently. None when it is empty."""
        return response.strip() or None

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """By `current` with the shared math-verify pool; by `stated` with `equal`."""
        if rule == "stated":
            stated = [None if text is None else final_answer(text) for text in extractions]
            return grade_open_answers(questions, stated, equal)
        return grade_open_answers(questions, extractions, shared_grader().pool.equal)

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        return {}


def _as_published(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record in R1-V's own fields."""
    if "problem" not in record:
        return record
    problem = record["problem"]
    question = problem.replace("<image>", "", 1).strip() if isinstance(problem, str) else problem
    renamed = {"image_path": record.get("images"), "question": question, "ground_truth": record.get("answer")}
    return {**record, **renamed}
