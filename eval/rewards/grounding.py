"""The reward of grounding (section 4, OS-Atlas): overlap with the gold box, centre hit, and format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval.rewards.bounding_boxes import BoundingBox, intersection_over_union, last_box
from eval.rewards.response_formats import RESPONSE_FORMATS, check_response_format, check_weight
from fastrl.rewards import Reward
from fastrl.rollouts import Question


@dataclass(frozen=True)
class Grounding:
    """iou_weight * IoU + centre_weight * centre-in + format_weight * format; continuous through the IoU.

    IoU: of the response's last box and the gold box, in [0, 1]; 0 without a box.
    centre-in: 1 when the centre of the response's box is in the gold box, else 0; it is `accuracy`, the
    measure that grounding benchmarks report.
    format: 1 when the response has `response_format` (a name in `RESPONSE_FORMATS`) and a box, else 0.
    Gold answers are boxes `[left, top, right, bottom]` in the unit that the prompt asks for.
    """

    response_format: str
    iou_weight: float
    centre_weight: float
    format_weight: float

    def __post_init__(self) -> None:
        check_response_format("grounding", self.response_format)
        for field in ("iou_weight", "centre_weight", "format_weight"):
            check_weight("grounding", field, getattr(self, field))

    def __call__(self, questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        """One reward a pair. Raises ValueError for unequal lengths and a gold answer without a box's area."""
        if len(questions) != len(responses):
            raise ValueError(f"{len(responses)} responses cannot answer {len(questions)} questions, one each")
        return [
            self._reward(question, response) for question, response in zip(questions, responses, strict=True)
        ]

    def _reward(self, question: Question, response: str) -> Reward:
        gold, box = _gold_box(question), last_box(response)
        if box is None:
            return Reward(0.0, 0.0, 0.0)
        centre_in = float(gold.holds(box.centre))
        format_score = float(RESPONSE_FORMATS[self.response_format](response))
        total = (
            self.iou_weight * intersection_over_union(box, gold)
            + self.centre_weight * centre_in
            + self.format_weight * format_score
        )
        return Reward(total, centre_in, format_score)


def _gold_box(question: Question) -> BoundingBox:
    box = last_box(question.answer)
    if box is None or box.area == 0:
        raise ValueError(
            f"question {question.id!r}: gold answer {question.answer!r} is no box [left, top, right, bottom] "
            "with an area; prepare the data set again"
        )
    return box
