"""What a response says about its answer in words: plain text, sentences, what follows "the answer is"."""

from __future__ import annotations

import re

_WRAPPERS = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|boldsymbol)\s*+\{([^{}]*+)\}")
_ANSWER_TAG = re.compile(r"<answer>:?", re.IGNORECASE)
_MARKUP = re.compile(r"</?(?:s|answer|think)>|<<|>>|\*\*|__|`|\\boxed|\\[()\[\],;! ]|\\left|\\right|\\?\$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_FULL_WIDTH = str.maketrans("（）：，．−", "():,.-")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n|(?<=。)")
_CUE = re.compile(
    r"\b(?:answer|option|choice|final (?:value|number|result))\b"
    r"(?:([^.\n:]{0,80}?)\b(?:is|are|was|be)\b:?|[^.\n:]{0,40}?:)"
    r"|(?:答案|选项|选)(?:应?为|应?是|选)?:?",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"[\s:]*+(?:(?:therefore|thus|so|then|definitely|clearly|likely|probably|simply|that|option|choice|letter"
    r"|answer|equal to|approximately|about|around|indeed|the|most|选项)(?![a-z])[\s:,]*+)*+",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\s*(?:not\b|incorrect|wrong|false\b|n['’]t\b)", re.IGNORECASE)
_CONDITION = re.compile(r"(?:if|whether)\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:cannot|can(?:no|['’])t|could not|unable|impossible|insufficient|not (?:possible|enough|provided?)"
    r"|(?:do|did|does) ?n[o'’]t have|haven['’]t|without (?:a|an|any|more|the|that|additional)"
    r"|need (?:more|to know)|please provide|sorry|unfortunately)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|none|never|neither|cannot)\b|n['’]t\b", re.IGNORECASE)
_CONCLUSION = re.compile(
    r"(?:so|therefore|thus|hence|in conclusion|in summary|overall)\b|所以|因此|综上", re.IGNORECASE
)
_STATEMENT_LENGTH = 200
_FILLER_LENGTH = 80
_MOST_STATEMENTS = 100


def plain_text(text: str) -> str:
    """The text without bold marks, tags, dollar signs, \\text{...} wrappers and thousands separators.

    `<answer>` becomes "Answer: " on a line of its own.
    """
    text = _ANSWER_TAG.sub("\nAnswer: ", _WRAPPERS.sub(r"\1", text).translate(_FULL_WIDTH))
    return _THOUSANDS.sub("", _MARKUP.sub("", text)).strip()


def sentences(text: str) -> list[str]:
    """The sentences and lines of a plain text that hold more than white space, in order."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def conclusion(text: str) -> str | None:
    """The last sentence that begins like a conclusion ("Therefore, ..."); None when none does."""
    return next((part for part in reversed(sentences(text)) if _CONCLUSION.match(part)), None)


def refuses(sentence: str) -> bool:
    """Whether a sentence says that there is no answer, or asks for more."""
    return _REFUSAL.search(sentence) is not None


def stated_answers(text: str) -> list[str]:
    """What follows each "answer is", "option:" ... in a plain text, filler words dropped, the last first.

    What is said not to be the answer, or to be it under a condition, is left out.
    """
    starts = [
        past_filler(text, cue.end())
        for cue in _CUE.finditer(text)
        if not (
            negations(cue[1] or "")
            or _DENIAL.match(text, cue.end())
            or _CONDITION.search(cue[1] or "")
            or _CONDITION.match(_sentence_before(text, cue.start()))
        )
    ]
    return [text[start : start + _STATEMENT_LENGTH] for start in reversed(starts[-_MOST_STATEMENTS:])]


def past_filler(text: str, start: int) -> int:
    """Where a text goes on after words such as "therefore" and "approximately" at `start`."""
    filler = _FILLER.match(text, start, start + _FILLER_LENGTH)
    return filler.end() if filler else start


def negations(text: str) -> int:
    """How many negating words a text holds."""
    return len(_NEGATION.findall(text))


def _sentence_before(text: str, end: int) -> str:
    """The part of a sentence that stands before `end`, as far as 200 characters back."""
    before = text[max(0, end - _STATEMENT_LENGTH) : end]
    return re.split(r"\n|[.!?] ", before)[-1].lstrip()
