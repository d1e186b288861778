"""What MathVista's official scoring makes of an extraction: a choice, a number or a list, as a string."""

from __future__ import annotations

import re

from eval.protocols.base import BenchmarkQuestion

PAPER_RULE = "paper"

_LETTER = re.compile(r"\(([a-zA-Z])\)")


def predicted_answer(question: BenchmarkQuestion, extraction: str, rule: str) -> str | None:
    """The answer that an extraction stands for, to be compared with the gold one as a string; None for none.

    Multiple choice: the choice of the first `(x)` or of a bare letter, else the nearest choice. Integers:
    `int(float(x))`, by the paper's rule `int(x)`. Floats: rounded to the question's precision.
    """
    choices = question.details["choices"]
    if choices:
        return _chosen(extraction.strip(), choices)
    answer_type = question.details["answer_type"]
    try:
        if answer_type == "integer":
            return str(int(extraction) if rule == PAPER_RULE else int(float(extraction)))
        if answer_type == "float":
            return str(round(float(extraction), question.details["precision"]))
    except (ValueError, OverflowError):
        return None
    return extraction


def _chosen(extraction: str, choices: list[str]) -> str:
    letter = _LETTER.search(extraction)
    answer = letter[1].upper() if letter else extraction
    index = ord(answer) - ord("A") if len(answer) == 1 else -1
    if 0 <= index < len(choices):
        return choices[index]
    return min(choices, key=lambda choice: edit_distance(answer, choice))


def edit_distance(first: str, second: str) -> int:
    """Levenshtein distance: insertions, deletions and substitutions cost 1 each."""
    distances = list(range(len(second) + 1))
    for row, left in enumerate(first, start=1):
        diagonal, distances[0] = distances[0], row
        for column, right in enumerate(second, start=1):
            substituted = diagonal + (left != right)
            diagonal = distances[column]
            distances[column] = min(substituted, distances[column] + 1, distances[column - 1] + 1)
    return distances[-1]
