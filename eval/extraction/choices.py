"""Which of a question's choices a response states: by its letter or by its text, where it says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from eval.extraction.boxed import last_boxed
from eval.extraction.stated_answers import (
    conclusion,
    past_filler,
    plain_text,
    refuses,
    sentences,
    stated_answers,
)

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_ALONE = re.compile(r"\(?\s*([A-Za-z])\s*\)?\s*[.:,。]?")
_LETTER_FIRST = re.compile(
    r"\(\s*([A-Za-z])\s*\)|([A-Z])\s*[).:;,(。]|([A-Z])\s*(?:$|\n| - )"
    r"|([A-Z])(?=\s+(?:is|was|would|will|because|since|as|which|to)\b)"
)
_BARE_LETTER = re.compile(r"([A-Z])(?![\w'’])", re.ASCII)
_MARK = re.compile(r"\(\s*([A-Z])\s*\)|(?<![\w(])([A-Z])\)")
_LETTER_IS_RIGHT = re.compile(
    r"(?<![\w])\(?([A-Z])\)?(?:\s+(?:is|was|would be)\s+(?:the\s+)?|是)(?:correct|right|best|正确)", re.ASCII
)
_VERB = re.compile(r"(?:\b(?:is|are|was|were|be|equals?|shows?|called)\b|[=≈为是])")
_FRACTION = re.compile(r"\\d?frac ?\{([^{}]++)\} ?\{([^{}]++)\}")
_DEGREES = re.compile(r" ?(?:\^ ?\{? ?\\circ ?\}?|\*?\\degree|°|\bdegrees?\b)")
_DROPPED = re.compile(r"[\\{}*\"“”]")
_TOKEN = re.compile(r"[a-z0-9_]+|[^\sa-z0-9_]")
_CONDITION = re.compile(r"if\b[^,]*+,", re.IGNORECASE)
_LETTER_LAST = re.compile(r"(?:\b(?:is|are|be)\s+|[=为是]\s*)([A-Z])\s*[.。]?$")
_WORD = re.compile(r"[a-z]{3,}")
_EMPTY_WORDS = frozenset(
    (
        *("answer", "correct", "option", "choic"),
        *(
            "the",
            "and",
            "are",
            "was",
            "wer",
            "will",
            "would",
            "has",
            "hav",
            "not",
            "with",
            "for",
            "that",
            "thi",
        ),
    )
)
"""Stems of words that tell no choices apart."""
_ENDING = re.compile(r"(?<=\w{3})(?:es|s|ed|d|ing|e)$")


def stated_choice(response: str, choices: Sequence[str], question: str = "") -> str | None:
    """The letter of the choice that a response states; None when it states none, or several.

    Looked for, in order: the whole response, its last box, after "the answer is", a marked letter "(B)", a
    line or start that is a letter or a choice, a choice's text in the concluding, first or last sentence, and
    there the words that only one choice has and the question has not. Linear in the response.
    """
    text = plain_text(response)
    reader = _ChoiceReader(choices, question)
    box = last_boxed(response)
    boxed = plain_text(box) if box is not None else ""
    return (
        reader.alone(text)
        or reader.alone(boxed)
        or reader.first(boxed)
        or reader.stated(text)
        or reader.opening(text)
        or reader.marked(text)
        or reader.line_alone(text)
        or reader.concluded(text)
    )


def comparable(text: str) -> str:
    """A text as it is compared with another: lower case, `a/b` fractions, `√`, without degrees and braces."""
    text = (
        _DEGREES.sub("", _FRACTION.sub(r"\1/\2", " ".join(text.split())))
        .replace(r"\sqrt", "√")
        .replace(r"\pi", "π")
    )
    return " ".join(_DROPPED.sub("", text).casefold().split())


def stems(text: str) -> set[str]:
    """The words of a text, lower case and without common endings."""
    return {_ENDING.sub("", word) for word in _WORD.findall(text.casefold())}


class _ChoiceReader:
    """The ways in which a text can name one of `choices`; every method gives a letter or None."""

    def __init__(self, choices: Sequence[str], question: str) -> None:
        self._letters = LETTERS[: len(choices)]
        compared = [comparable(choice) for choice in choices]
        self._letter_of: dict[str, str] = {}
        for letter, text in zip(self._letters, compared, strict=True):
            if text:
                self._letter_of.setdefault("".join(text.split()), letter)
        patterns = [
            r"\s*".join(re.escape(token) for token in _TOKEN.findall(text.rstrip(".")))
            for text in sorted(compared, key=len, reverse=True)
            if text and not (len(text) == 1 and text.isascii() and text.isalpha())
        ]
        self._mention = re.compile(
            rf"(?<![a-z0-9_.√\-])(?:{'|'.join(patterns) or '(?!)'})(?![a-z0-9_√]|[.:]\d)", re.ASCII
        )
        words = [stems(choice) for choice in choices]
        self._asked = stems(question) | _EMPTY_WORDS
        self._own_words = {
            letter: own.difference(_EMPTY_WORDS, *(other for other in words if other is not own))
            for letter, own in zip(self._letters, words, strict=True)
        }

    def alone(self, text: str) -> str | None:
        """The text is a letter, or a choice's text, and nothing else."""
        return self._known(_ALONE.fullmatch(text)) or self._letter_of.get(
            "".join(comparable(text.rstrip(".。")).split())
        )

    def first(self, text: str) -> str | None:
        """The text begins with a letter, or with a choice's text."""
        marked = self._known(_LETTER_FIRST.match(text))
        if marked:
            return marked
        mention = self._mention.match(comparable(text))
        return self._of(mention) if mention else self._known(_BARE_LETTER.match(text))

    def opening(self, text: str) -> str | None:
        """The text opens with a marked letter, a choice's text or both; then the choice's text counts.

        "A: No" is how some models write "Answer: No".
        """
        marked = _LETTER_FIRST.match(text)
        after = comparable(text[marked.end() if marked else 0 :]).lstrip(" .:)-")
        mention = self._mention.match(after)
        if mention:
            return self._of(mention)
        return self._known(marked)

    def stated(self, text: str) -> str | None:
        """What the last "the answer is ..." says that names a choice."""
        for statement in stated_answers(text):
            sentence = next(iter(sentences(statement)), "")
            found = self.first(statement) or self.marked(sentence) or self._only_mention(sentence)
            if found:
                return found
        return _only({match[1] for match in _LETTER_IS_RIGHT.finditer(text)} & set(self._letters))

    def marked(self, text: str) -> str | None:
        """The one letter marked "(B)" or "B)" in the text."""
        return _only({mark[1] or mark[2] for mark in _MARK.finditer(text)} & set(self._letters))

    def line_alone(self, text: str) -> str | None:
        """The last line that is a letter or a choice's text."""
        lines = (self.alone(line.strip()) for line in reversed(text.splitlines()))
        return next((found for found in lines if found), None)

    def concluded(self, text: str) -> str | None:
        """The choice named in the last sentence that concludes, else in the first or the last sentence."""
        parts = sentences(text)
        candidates = [
            part for part in (conclusion(text), *parts[:1], *parts[-1:]) if part and not refuses(part)
        ]
        for read in (self._named, self._worded):
            for part in candidates:
                found = read(part)
                if found:
                    return found
        return None

    def _named(self, text: str) -> str | None:
        letter = None
        if not _CONDITION.match(text):
            letter = self._known(_LETTER_LAST.search(text)) or self.marked(text)
        return letter or self._only_mention(text) or self._after_verb(text)

    def _worded(self, text: str) -> str | None:
        said, condition = stems(text), _CONDITION.match(text)
        found = self._only_with({letter: own - self._asked for letter, own in self._own_words.items()}, said)
        if found is None and condition:
            found = self._only_with(self._own_words, stems(text[condition.end() :]))
        return found

    @staticmethod
    def _only_with(own_words: Mapping[str, set[str]], said: set[str]) -> str | None:
        return _only(letter for letter, own in own_words.items() if own & said)

    def _only_mention(self, text: str) -> str | None:
        return _only({self._of(mention) for mention in self._mention.finditer(comparable(text))})

    def _after_verb(self, text: str) -> str | None:
        text = comparable(text)
        found = None
        for verb in _VERB.finditer(text):
            mention = self._mention.match(text, past_filler(text, verb.end()))
            found = self._of(mention) if mention else found
        return found

    def _known(self, letter: re.Match[str] | None) -> str | None:
        """The letter in a match's only group that took part, when a choice has it."""
        found = letter[letter.lastindex or 0].upper() if letter else ""
        return found if found and found in self._letters else None

    def _of(self, mention: re.Match[str]) -> str:
        text = "".join(mention[0].split())
        return self._letter_of.get(text) or self._letter_of[f"{text}."]


def _only(letters: Iterable[str]) -> str | None:
    found = set(letters)
    return found.pop() if len(found) == 1 else None
