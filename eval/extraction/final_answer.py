"""The final answer of a response as text: in a box, in <answer> tags, or after "the answer is"."""

from __future__ import annotations

import re

from eval.extraction.boxed import last_boxed
from eval.extraction.stated_answers import stated_answers

_OPEN, _CLOSE = "<answer>", "</answer>"
_END = re.compile(r"\n|[.!?](?:\s|$)|[。！？]|,\s+(?:so|which|because|since|as|and)\b")


def final_answer(text: str) -> str | None:
    """The last box, else the last <answer>, else what the last "the answer is" states; None without any.

    Takes linear time; the answer is returned as it is written, white space around it removed.
    """
    for found in (last_boxed(text), tagged_answer(text), stated_answer(text)):
        if found is not None and found.strip():
            return found.strip()
    return None


def tagged_answer(text: str) -> str | None:
    """Content of the last closed <answer>...</answer>; None when there is none."""
    end = text.rfind(_CLOSE)
    start = text.rfind(_OPEN, 0, end) if end >= 0 else -1
    return None if start < 0 else text[start + len(_OPEN) : end]


def stated_answer(text: str) -> str | None:
    """What stands after the last "the answer is", up to the end of its sentence; None when there is none."""
    for statement in stated_answers(text):
        end = _END.search(statement)
        answer = (statement if end is None else statement[: end.start()]).strip().rstrip(".")
        if answer:
            return answer
    return None
