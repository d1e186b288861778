"""The answer in a response to a MathVista question, by rules instead of the official LLM extractor."""

from __future__ import annotations

import re

from eval.extraction.boxed import last_boxed
from eval.extraction.choices import stated_choice
from eval.extraction.numbers import numbers, stated_number
from eval.extraction.restatements import restated
from eval.extraction.stated_answers import plain_text, sentences, stated_answers
from eval.protocols.base import BenchmarkQuestion

LONGEST_STATEMENT = 100
"""Characters of an answer that is taken as stated; longer text behind "the answer is" is an explanation."""

_LIST = re.compile(r"\[[^\[\]]*+\]")
_YES_NO = ["no", "yes"]


def extract_answer(question: BenchmarkQuestion, response: str) -> str | None:
    """A choice's letter, a number, a list, or an answer outside the choices as stated; None without one.

    The official scoring maps an answer outside the choices to the nearest choice. A response that states no
    answer, or refuses to, has no extraction.
    """
    choices, text = question.details["choices"], question.details["question"]
    if choices:
        return _choice(response, choices, text)
    if question.details["answer_type"] == "list":
        lists = _LIST.findall(plain_text(response))
        return ", ".join(lists[-1].replace(",", " ").split()) if lists else None
    return stated_number(response, text)


def _choice(response: str, choices: list[str], question: str) -> str | None:
    letter = stated_choice(response, choices, question)
    if letter is not None:
        return letter
    folded = [choice.strip().casefold() for choice in choices]
    affirmed = restated(response, question) if sorted(folded) == _YES_NO else None
    if affirmed is not None:
        return "AB"[folded.index("yes" if affirmed else "no")]
    return _outside_the_choices(response, choices, question)


def _outside_the_choices(response: str, choices: list[str], question: str) -> str | None:
    box = last_boxed(response)
    stated = [box] if box is not None else stated_answers(plain_text(response))[:1]
    for statement in stated:
        sentence = next(iter(sentences(plain_text(statement))), "")
        if 0 < len(sentence) <= LONGEST_STATEMENT:
            return sentence
    return stated_number(response, question) if all(map(numbers, choices)) else None
