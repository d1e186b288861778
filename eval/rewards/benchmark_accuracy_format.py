"""The paper's reward (section 4.1) for open answers: a benchmark's own verdict + 0.5 * format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval.grading.open_answers import shared_grader
from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkQuestion
from eval.rewards.response_formats import RESPONSE_FORMATS, check_response_format, check_weight
from fastrl.rewards import Reward
from fastrl.rollouts import Question


@dataclass(frozen=True)
class BenchmarkAccuracyFormat:
    """accuracy + format_weight * format.

    accuracy: 1 when the protocol of `benchmark` (a name in `eval.protocols.PROTOCOLS`) extracts an answer and
    grades it as right by `rule` (one of the protocol's), else 0: the benchmark's verdict on the same text.
    format: 1 when the response has `response_format` (a name in `RESPONSE_FORMATS`), else 0.
    """

    benchmark: str
    rule: str
    response_format: str
    format_weight: float

    def __post_init__(self) -> None:
        check_response_format("benchmark_accuracy_format", self.response_format)
        check_weight("benchmark_accuracy_format", "format_weight", self.format_weight)
        rules = load_protocol(self.benchmark).rules
        if self.rule not in rules:
            raise ValueError(
                f"reward benchmark_accuracy_format: {self.benchmark} has no rule {self.rule!r}; it has "
                f"{', '.join(rules)}"
            )

    def __call__(self, questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        """One reward a pair; all answers are graded together. Raises ValueError for unequal lengths."""
        if len(questions) != len(responses):
            raise ValueError(f"{len(responses)} responses cannot answer {len(questions)} questions, one each")
        protocol = load_protocol(self.benchmark)
        asked = [_benchmark_question(question) for question in questions]
        extractions = [
            protocol.extract(question, response) for question, response in zip(asked, responses, strict=True)
        ]
        verdicts = protocol.grade(asked, extractions, self.rule, shared_grader().equal)
        has_format = RESPONSE_FORMATS[self.response_format]
        rewards = []
        for verdict, response in zip(verdicts, responses, strict=True):
            accuracy, format_score = float(verdict is True), float(has_format(response))
            rewards.append(Reward(accuracy + self.format_weight * format_score, accuracy, format_score))
        return rewards


def _benchmark_question(question: Question) -> BenchmarkQuestion:
    """The question as its benchmark's protocol sees it; a training question carries its answer alone."""
    if isinstance(question, BenchmarkQuestion):
        return question
    return BenchmarkQuestion(
        id=question.id,
        prompt=question.prompt,
        answer=question.answer,
        family=question.family,
        images=(),
        labels={},
        details={},
    )
