"""One grader for open answers: strings, letters, numbers, then math-verify where still undecided."""

from __future__ import annotations

import atexit
import functools
import math
import os
import re
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType
from typing import Self

from eval.grading.bounded_arithmetic import Number
from eval.grading.latex_number import NumberList, latex_value
from eval.grading.normalise import (
    compact,
    normalise_answer,
    option_letter,
    split_assignment,
    split_label,
    split_unit,
)
from eval.grading.pool import MathVerifyPool, PoolSettings

MAX_ANSWER_CHARACTERS = 20_000
"""A longer answer equals the gold one only as a string."""
SHARED_POOL = PoolSettings(workers=2, seconds_per_pair=1.0, megabytes_per_worker=2048, pairs_per_process=500)
"""What `shared_grader` runs with: lm-eval calls its hooks without settings."""

_WORDS = re.compile(r"[A-Za-z]{4,}(?: [A-Za-z]+)*+")
_UNORDERED = ("", "{}")


class OpenAnswerGrader:
    """Whether (gold, answer) pairs are equal. The gold side is trusted text, the answer side is not.

    Use it as a context manager, or close it. It matches `eval.protocols.base.EqualAnswers`.
    """

    def __init__(self, pool: PoolSettings) -> None:
        self.pool = MathVerifyPool(pool)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """The same as `equal`."""
        return self.equal(pairs)

    def close(self) -> None:
        """End the worker processes."""
        self.pool.close()

    def equal(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether each pair is equal; a pair that occurs again is compared once."""
        decided = {pair: equal_without_math_verify(*pair) for pair in dict.fromkeys(pairs)}
        open_pairs = [pair for pair, verdict in decided.items() if verdict is None]
        boxed = [(_boxed(gold), _boxed(answer)) for gold, answer in open_pairs]
        decided.update(zip(open_pairs, self.pool.equal(boxed), strict=True))
        return [bool(decided[pair]) for pair in pairs]


@functools.cache
def shared_grader() -> OpenAnswerGrader:
    """The process-wide grader of lm-eval hooks; workers start at the first undecided pair, end at exit."""
    grader = OpenAnswerGrader(SHARED_POOL)
    atexit.register(grader.close)
    return grader


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared_grader.cache_clear)


def equal_without_math_verify(gold: str, answer: str) -> bool | None:
    """Whether two open answers are equal as strings, letters or numbers; None when that does not decide."""
    if gold.strip() == answer.strip():
        return bool(gold.strip())
    if len(answer) > MAX_ANSWER_CHARACTERS:
        return False
    gold, answer = normalise_answer(gold), normalise_answer(answer)
    if not answer or not gold:
        return False
    if compact(gold) == compact(answer):
        return True
    letter = option_letter(gold)
    label, rest = split_label(answer)
    if letter is not None:
        return letter == (option_letter(answer) or label)
    if _WORDS.fullmatch(gold) and _WORDS.fullmatch(answer):
        return False
    return _equal_values(gold, rest)


def _equal_values(gold: str, answer: str) -> bool | None:
    assignments = [split_assignment(gold), split_assignment(answer)]
    variables = [variable for variable, _ in assignments if variable is not None]
    if len(variables) == 2 and variables[0] != variables[1]:
        return None
    quantities = [split_unit(value) for _, value in assignments]
    gold_unit, answer_unit = (quantity.unit for quantity in quantities)
    if compact(quantities[0].value) == compact(quantities[1].value):
        return gold_unit == answer_unit or None in (gold_unit, answer_unit)
    parsed = [latex_value(quantity.value) for quantity in quantities]
    if parsed[0] is None or parsed[1] is None:
        return None
    if gold_unit != answer_unit and None not in (gold_unit, answer_unit):
        return False
    if values_equal(parsed[0], parsed[1]):
        return True
    percents = [quantity.value.endswith("%") for quantity in quantities]
    if percents[0] != percents[1] and not any(isinstance(value, NumberList) for value in parsed):
        return _equal_without_percent(quantities[0].value, quantities[1].value)
    return False


def _equal_without_percent(gold: str, answer: str) -> bool:
    """50% is 50 too: benchmarks leave the sign out where the question asks for a percentage."""
    left, right = latex_value(gold.rstrip("% ")), latex_value(answer.rstrip("% "))
    return left is not None and right is not None and values_equal(left, right)


def values_equal(gold: Number | NumberList, answer: Number | NumberList) -> bool:
    """Whether two values are equal: lists in order, or in any order without brackets and in braces."""
    if not isinstance(gold, NumberList) and not isinstance(answer, NumberList):
        return numbers_equal(gold, answer)
    if not isinstance(gold, NumberList) or not isinstance(answer, NumberList):
        return False
    if len(gold.items) != len(answer.items) or (
        gold.brackets != answer.brackets and gold.brackets and answer.brackets
    ):
        return False
    left, right = list(gold.items), list(answer.items)
    if gold.brackets in _UNORDERED and answer.brackets in _UNORDERED:
        left, right = sorted(left), sorted(right)
    return all(numbers_equal(a, b) for a, b in zip(left, right, strict=True))


def numbers_equal(gold: Number, answer: Number) -> bool:
    """Whether two numbers are equal: finite decimals exactly, others to nine digits.

    A decimal of six or more places also equals a number with no finite decimal form that it approximates.
    """
    if gold == answer:
        return True
    places = _decimal_places(gold), _decimal_places(answer)
    if None not in places:
        return False
    try:
        return _close(float(gold), float(answer), places)
    except OverflowError:
        return False


def _close(gold: float, answer: float, places: tuple[int | None, int | None]) -> bool:
    if math.isclose(gold, answer, rel_tol=1e-9):
        return True
    written = places[0] if places[0] is not None else places[1]
    return (
        written is not None
        and written >= 6
        and abs(gold - answer) <= 10.0**-written
        and math.isclose(gold, answer, rel_tol=1e-5)
    )


def _decimal_places(value: Number) -> int | None:
    """Places after the point that write a number exactly; None when no finite number of them does."""
    if not isinstance(value, Fraction):
        return None
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _boxed(text: str) -> str:
    return f"\\boxed{{{normalise_answer(text)}}}"
