"""The paper's reward (section 4.1), accuracy {0, 1} + 0.5 * format {0, 1}, for whole-number answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eval.extraction.boxed import boxed_integer, normalise_integer
from fastrl.rewards import Reward
from fastrl.rollouts import Question


@dataclass(frozen=True)
class BoxedAccuracyFormat:
    """accuracy + format_weight * format.

    accuracy: 1 when the last \\boxed{} holds the gold answer as a whole number (073 is 73), else 0.
    format: 1 when the response is <think>...</think> followed by a \\boxed{}, else 0. It is what EasyR1's
    regular expression `<think>.*</think>.*\\\\boxed\\{.*\\}.*` accepts as a full match, found in linear time.
    """

    format_weight: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.format_weight) or self.format_weight < 0:
            raise ValueError(
                f"reward boxed_accuracy_format: format_weight = {self.format_weight} must be 0 or more"
            )

    def __call__(self, questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        """One reward a pair. Raises ValueError for unequal lengths and a gold answer that is no number."""
        if len(questions) != len(responses):
            raise ValueError(f"{len(responses)} responses cannot answer {len(questions)} questions, one each")
        return [
            self._reward(question, response) for question, response in zip(questions, responses, strict=True)
        ]

    def _reward(self, question: Question, response: str) -> Reward:
        gold = normalise_integer(question.answer)
        if gold is None:
            raise ValueError(
                f"question {question.id!r}: gold answer {question.answer!r} is no whole number; "
                "use a reward that can grade it"
            )
        accuracy = float(boxed_integer(response) == gold)
        format_score = float(is_think_then_box(response))
        return Reward(accuracy + self.format_weight * format_score, accuracy, format_score)


def is_think_then_box(response: str) -> bool:
    """Whether the response is <think>...</think>, then a \\boxed{}; white space around it does not count."""
    text = response.strip()
    if not text.startswith("<think>"):
        return False
    end = text.find("</think>")
    box = text.find("\\boxed{", end) if end >= 0 else -1
    return box >= 0 and text.find("}", box) >= 0
