"""The answer in the last \\boxed{...} of a response or solution, and whole numbers in a canonical form."""

from __future__ import annotations

import re

_BRACES = re.compile(r"\\boxed\s*+\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\boxed\s+(\\?[^\s$\\.{}]+)")
_DEGREES = r"(?:°|\\degree|degrees?|\^\s*+\\circ|\^\s*+\{\s*+\\circ\s*+\})"
_INTEGER = re.compile(rf"([+-]?)([0-9]++)(?:\.0*+)?(?:\s*+{_DEGREES})?\s*+\.?")


def last_boxed(text: str) -> str | None:
    """Content of the \\boxed{...} that opens last among those whose braces balance; None when there is none.

    Escaped braces (`\\{`, `\\}`) count as text, as in LaTeX. One pass over the text, whatever it holds.
    """
    open_braces: list[tuple[int, bool]] = []
    last = (-1, -1)
    for match in _BRACES.finditer(text):
        token = match.group()
        if token.endswith("{") and token != "\\{":
            open_braces.append((match.end(), token != "{"))
        elif token == "}" and open_braces:
            start, boxed = open_braces.pop()
            if boxed and start > last[0]:
                last = (start, match.start())
    return None if last[0] < 0 else text[last[0] : last[1]]


def gold_answer(solution: str) -> str | None:
    """What the last `\\boxed{...}` or `\\fbox{...}` of an official solution holds, stripped.

    Else the word after the last `\\boxed` without braces (`\\boxed 2`); None without any. Responses are read
    more strictly, by `last_boxed`.
    """
    boxed = last_boxed(solution.replace("\\fbox", "\\boxed"))
    if boxed is not None and boxed.strip():
        return boxed.strip()
    bare = _BARE_BOX.findall(solution)
    return bare[-1] if bare else None


def normalise_integer(text: str) -> str | None:
    """`text` as a whole number in canonical form ("073" -> "73", "-0" -> "0"); None when it is none.

    White space and dollar signs around it, a degree sign or word, a trailing period and zero decimals are
    dropped. Digits stay a string, so that no number is too long.
    """
    match = _INTEGER.fullmatch(text.strip().strip("$").strip())
    if match is None:
        return None
    sign, digits = match.groups()
    digits = digits.lstrip("0") or "0"
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def boxed_integer(text: str) -> str | None:
    """The whole number in the last box of `text` in canonical form; None without a box or a number in it."""
    content = last_boxed(text)
    return None if content is None else normalise_integer(content)
