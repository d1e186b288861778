"""The response formats that prompts ask for, checked in linear time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from eval.rewards.boxed_accuracy_format import is_think_then_box

_THINK, _ANSWER_END = "<think>", "</answer>"
_ANSWER_START = re.compile(r"</think>\s*+<answer>")


def is_think_then_answer(response: str) -> bool:
    """Whether the response is <think>...</think>, then <answer>...</answer>, with nothing after it.

    It is what EasyR1's `<think>.*?</think>\\s*<answer>.*?</answer>` accepts as a full match, white space
    around the response aside.
    """
    text = response.strip()
    if not text.startswith(_THINK) or not text.endswith(_ANSWER_END):
        return False
    start = _ANSWER_START.search(text, len(_THINK))
    return start is not None and start.end() <= len(text) - len(_ANSWER_END)


RESPONSE_FORMATS: dict[str, Callable[[str], bool]] = {
    "think_then_answer": is_think_then_answer,
    "think_then_box": is_think_then_box,
}
"""Name of a format in reward configs -> whether a response has it."""


def check_response_format(reward: str, name: str) -> None:
    """Raises ValueError naming the reward when there is no such format."""
    if name not in RESPONSE_FORMATS:
        known = ", ".join(sorted(RESPONSE_FORMATS))
        raise ValueError(f"reward {reward}: unknown response_format {name!r}; known: {known}")


def check_weight(reward: str, field: str, weight: float) -> None:
    """Raises ValueError naming the reward and its field when a weight is negative or not finite."""
    if not math.isfinite(weight) or weight < 0:
        raise ValueError(f"reward {reward}: {field} = {weight} must be 0 or more")
