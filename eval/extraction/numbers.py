"""The number that a response states as its answer, where it says so."""

from __future__ import annotations

import re

from eval.extraction.boxed import last_boxed
from eval.extraction.stated_answers import (
    conclusion,
    past_filler,
    plain_text,
    refuses,
    sentences,
    stated_answers,
)

_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
    "twenty",
)
_VALUE_OF = {word: str(value) for value, word in enumerate(_WORDS)} | {"no": "0"}
_DIGITS = re.compile(r"(?<![a-z0-9.^_])-?(?:\d+(?:\.\d+)?|\.\d+)(?!\d)", re.IGNORECASE | re.ASCII)
_WORDED = re.compile(
    rf"\b(?:{'|'.join(_WORDS)})\b|(?:(?<=\bare )|(?<=\bis )|(?<=\bwere ))no\b", re.IGNORECASE
)
_NUMBER = re.compile(rf"{_DIGITS.pattern}|{_WORDED.pattern}", re.IGNORECASE | re.ASCII)
_VERB = re.compile(r"(?:\b(?:is|are|was|were|be|equals?|shows?)\b|[=≈])", re.IGNORECASE)
_EQUALS = re.compile(r"[=≈]")
_BOLD = re.compile(r"\*\*([^*\n]{1,40})\*\*")
_BLANK = "(_)"
_WORD = re.compile(r"[a-z]+")
_SHORTEST_CONTENT_WORD = 3


def stated_number(response: str, question: str) -> str | None:
    """The number that a response states, as it stands there ("three" as "3"); None when it states none.

    Looked for, in order: the whole response, its last box, the blank "(_)" of the question filled in, after
    "the answer is", the one number in bold, the concluding sentence, and the sentence with most of the
    question's words. A sentence that refuses an answer is not read. Linear in the response.
    """
    text = plain_text(response)
    whole = _NUMBER.match(text)
    if whole and len(text.rstrip(" .%°")) == whole.end():
        return _value(whole)
    box = last_boxed(response)
    boxed = numbers(plain_text(box)) if box is not None else []
    if boxed:
        return boxed[-1]
    given = set(numbers(question))
    return (
        _filled_in(text, question)
        or _after_cue(text)
        or _in_bold(response)
        or _concluded(text, given)
        or _in_closest_sentence(text, question, given)
    )


def numbers(text: str) -> list[str]:
    """The numbers of a plain text in digits, in order; in words where there are none in digits."""
    return _written(_DIGITS, text) or _written(_WORDED, text)


def _filled_in(text: str, question: str) -> str | None:
    before, blank, after = question.casefold().partition(_BLANK)
    left, right = _WORD.findall(before)[-1:], _WORD.findall(after)[:1]
    if not blank or not right:
        return None
    number = rf"({_NUMBER.pattern})\s{{0,3}}{right[0]}\b"
    preceded = rf"\b{left[0]}\s{{1,3}}(?:about |approximately )?{number}" if left else number
    for pattern in (preceded, number):
        found = [match[1] for match in re.finditer(pattern, text, re.IGNORECASE | re.ASCII)]
        if found:
            return _VALUE_OF.get(found[-1].casefold(), found[-1])
    return None


def _after_cue(text: str) -> str | None:
    for statement in stated_answers(text):
        sentence = next(iter(sentences(statement)), "")
        found = numbers(sentence)
        if found and not refuses(sentence):
            return next(iter(numbers(_EQUALS.split(sentence)[-1])), found[0])
    return None


def _in_bold(response: str) -> str | None:
    found = {number for bold in _BOLD.findall(response) for number in numbers(plain_text(bold))}
    return found.pop() if len(found) == 1 else None


def _concluded(text: str, given: set[str]) -> str | None:
    end = conclusion(text)
    return None if end is None or refuses(end) else _of_sentence(end, given)


def _in_closest_sentence(text: str, question: str, given: set[str]) -> str | None:
    asked = _content_words(question)
    parts = [part for part in sentences(text) if numbers(part) and not refuses(part)]
    closest = max(reversed(parts), key=lambda part: len(asked & _content_words(part)), default="")
    return _of_sentence(closest, given)


def _of_sentence(sentence: str, given: set[str]) -> str | None:
    """The number after the last equals sign, after the last verb, else the first that was not given."""
    found = numbers(sentence)
    if _EQUALS.search(sentence):
        results = numbers(_EQUALS.split(sentence)[-1])
        if results:
            return results[0]
    after_verb = [
        _NUMBER.match(sentence, past_filler(sentence, verb.end())) for verb in _VERB.finditer(sentence)
    ]
    stated = [number for number in after_verb if number]
    if stated:
        return _value(stated[-1])
    new = [number for number in (*found, *_written(_WORDED, sentence)) if number not in given]
    return next(iter(new or found), None)


def _content_words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _SHORTEST_CONTENT_WORD}


def _written(pattern: re.Pattern[str], text: str) -> list[str]:
    return [_value(number) for number in pattern.finditer(text)]


def _value(number: re.Match[str]) -> str:
    return _VALUE_OF.get(number[0].casefold(), number[0])
