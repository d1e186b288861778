"""Yes or no from a response that restates the question: "The bed is much larger than the kitten." """

from __future__ import annotations

import re

from eval.extraction.stated_answers import conclusion, negations, plain_text, refuses, sentences

_WORD = re.compile(r"[a-z]+")
_FUNCTION_WORDS = frozenset(
    (
        *(
            "a",
            "an",
            "the",
            "there",
            "that",
            "this",
            "it",
            "its",
            "and",
            "or",
            "if",
            "any",
            "you",
            "not",
            "no",
        ),
        *(
            "is",
            "are",
            "was",
            "were",
            "be",
            "do",
            "does",
            "did",
            "has",
            "have",
            "can",
            "could",
            "will",
            "would",
        ),
        *("of", "in", "on", "at", "to", "for", "with", "by"),
    )
)
_MORE = frozenset(["more", "greater", "larger", "bigger", "higher", "longer", "taller", "above"])
_LESS = frozenset(["less", "fewer", "smaller", "lower", "shorter", "below"])
_SHARE = 0.7


def restated(response: str, question: str) -> bool | None:
    """Whether a response affirms a yes-no question by repeating its words; None when it repeats too few.

    Read in the concluding, the first and the last sentence: one that holds 70 % of the question's words
    affirms it, unless it has one negation more or less, or the opposite comparative.
    """
    text = plain_text(response)
    parts = sentences(text)
    asked = _WORD.findall(question.casefold())
    wanted = set(asked) - _FUNCTION_WORDS - _MORE - _LESS
    for part in filter(None, (conclusion(text), *parts[:1], *parts[-1:])):
        if refuses(part):
            continue
        said = _WORD.findall(part.casefold())
        if wanted and len(wanted & set(said)) >= _SHARE * len(wanted):
            opposed = bool(
                (_MORE & set(asked) and _LESS & set(said) and not _MORE & set(said))
                or (_LESS & set(asked) and _MORE & set(said) and not _LESS & set(said))
            )
            return (negations(part) - negations(question) + opposed) % 2 == 0
    return None
