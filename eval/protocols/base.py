"""What a benchmark's protocol is: records to questions, responses to extractions, verdicts and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fastrl.rollouts import Question

EqualAnswers = Callable[[Sequence[tuple[str, str]]], list[bool]]
"""Whether each (gold, answer) pair of open answers is equal; `eval.grading` makes one."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkQuestion(Question):
    """A question of a public benchmark. `family` is "": breakdowns are in `labels`.

    images: where each `<image>` of the prompt is found, in order (see `eval.datasets.images`).
    labels: official breakdowns, such as {"subject": ("algebra",)}; a question counts in each of its labels.
    details: what grading needs of the official record; JSON-able.
    """

    images: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    details: Mapping[str, Any]


class BenchmarkProtocol(Protocol):
    """A benchmark's official protocol without a judge model. Registered in `eval.protocols.PROTOCOLS`."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the published scoring rules, the current one first; one for most benchmarks."""
        ...

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        """The questions, prompts included, of official records, in order.

        Raises ValueError naming the record and the field that is missing or malformed.
        """
        ...

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The answer in a response, in linear time; None when there is none. Never guesses."""
        ...

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """Whether each extraction is right; None where only a judge could tell. No extraction is False."""
        ...

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        """Official scores beyond accuracy and its breakdowns ({} for most); one response per question."""
        ...
