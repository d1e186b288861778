"""Numeric LaTeX as a number: an own evaluator with bounds on length, depth and size, which never runs code.

It knows numbers, fractions, roots, powers, pi, infinity, percent, factorials, mixed numbers
(`1\\frac{1}{2}`), ratios (`2:3` is 2/3), and lists of these. Whatever else stands in the text, a unit or a
degree sign included, makes it no number. Rational values are exact, the others are floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from eval.grading.bounded_arithmetic import (
    NotNumeric,
    Number,
    bounded,
    divide,
    factorial,
    literal,
    power,
)

MAX_CHARACTERS = 4000
"""Longer texts are no numbers."""
MAX_DEPTH = 60
"""Brackets in brackets, signs and powers in powers; deeper texts are no numbers."""

_TOKEN = re.compile(
    r"(?P<space>\s++)"
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3}(?![0-9.]))?)"
    r"|(?P<command>\\[A-Za-z]++|√|π|∞|sqrt|pi(?![A-Za-z]))"
    r"|(?P<symbol>\\[{}%]|[-+*/^(){}\[\],;:!%−×·÷])",
    re.DOTALL,
)
_IGNORED = {r"\left", r"\right", r"\displaystyle"}
_SYMBOLS = {
    r"\cdot": "*",
    r"\times": "*",
    "×": "*",
    "·": "*",
    r"\div": "/",
    "÷": "/",
    "−": "-",
    r"\%": "%",
    "√": r"\sqrt",
    "sqrt": r"\sqrt",
    "π": r"\pi",
    "pi": r"\pi",
    "∞": r"\infty",
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\cfrac": r"\frac",
    r"\{": "\\{",
    r"\lbrace": "\\{",
    r"\rbrace": "\\}",
}
_CLOSING = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}
_END = ("end", "")


@dataclass(frozen=True)
class NumberList:
    """Numbers with commas between them, and the two brackets around them ("" when there are none)."""

    brackets: str
    items: tuple[Number, ...]


def latex_number(text: str) -> Number | None:
    """The value of numeric LaTeX; None when the text is not one number."""
    value = latex_value(text)
    return None if isinstance(value, NumberList) else value


def latex_value(text: str) -> Number | NumberList | None:
    """The value of numeric LaTeX, or its list of values; None when the text is neither."""
    try:
        return _Parser(_tokens(text)).value()
    except (NotNumeric, OverflowError, ZeroDivisionError):
        return None


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) of each token; the kinds are number and symbol."""
    if len(text) > MAX_CHARACTERS:
        raise NotNumeric
    tokens: list[tuple[str, str]] = []
    position, spaced = 0, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotNumeric
        position, kind, token = match.end(), match.lastgroup, match.group()
        if kind == "number":
            if not spaced and tokens[-1][0] == "number":
                raise NotNumeric
            tokens.append(("number", token))
        elif kind != "space" and token not in _IGNORED:
            tokens.append(("symbol", _SYMBOLS.get(token, token)))
        spaced = kind == "space"
    return tokens


class _Parser:
    """Recursive descent over the tokens; `_depth` bounds the recursion."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def value(self) -> Number | NumberList:
        """The whole text: a number, or a list with or without brackets around it."""
        result = self._bracketed_list() or self._list()
        self._expect_end()
        return result

    def _bracketed_list(self) -> NumberList | None:
        """A list whose brackets enclose the whole text; None, with nothing read, when it is none."""
        opening = self._symbol()
        if opening not in ("(", "[", "\\{"):
            return None
        tokens = list(self._tokens)
        self._at += 1
        try:
            result = self._list()
            closing = self._symbol()
            self._at += 1
            self._expect_end()
            if isinstance(result, NumberList) and closing in (")", "]", "\\}"):
                return NumberList(opening[-1] + closing[-1], result.items)
            if opening == "\\{" and closing == "\\}" and not isinstance(result, NumberList):
                return NumberList("{}", (result,))
        except NotNumeric:
            pass
        self._tokens, self._at, self._depth = tokens, 0, 0
        return None

    def _list(self) -> Number | NumberList:
        items = [self._ratio()]
        while self._symbol() in (",", ";"):
            self._at += 1
            items.append(self._ratio())
        return items[0] if len(items) == 1 else NumberList("", tuple(items))

    def _ratio(self) -> Number:
        result = self._sum()
        while self._symbol() == ":":
            self._at += 1
            result = divide(result, self._sum())
        return result

    def _sum(self) -> Number:
        result = self._product()
        while self._symbol() in ("+", "-"):
            sign = self._next()[1]
            term = self._product()
            result = bounded(result + term if sign == "+" else result - term)
        return result

    def _product(self) -> Number:
        result = self._signed()
        while True:
            symbol = self._symbol()
            if symbol in ("*", "/"):
                self._at += 1
                factor = self._signed()
                result = bounded(result * factor) if symbol == "*" else divide(result, factor)
            elif self._starts_factor():
                if self._peek()[0] == "number" and self._tokens[self._at - 1][0] == "number":
                    raise NotNumeric
                result = bounded(result * self._power())
            else:
                return result

    def _starts_factor(self) -> bool:
        kind, token = self._peek()
        return kind == "number" or token in ("(", "[", "{", r"\frac", r"\sqrt", r"\pi", r"\infty")

    def _signed(self) -> Number:
        sign = 1
        while self._symbol() in ("+", "-"):
            sign = -sign if self._next()[1] == "-" else sign
        return sign * self._power()

    def _power(self) -> Number:
        base = self._mixed()
        while (symbol := self._symbol()) in ("^", "!", "%"):
            self._at += 1
            if symbol == "^":
                base = power(base, self._exponent())
            elif symbol == "!":
                base = factorial(base)
            else:
                base = divide(base, Fraction(100))
        return base

    def _exponent(self) -> Number:
        if self._symbol() == "-":
            self._at += 1
            return -self._exponent_atom()
        return self._exponent_atom()

    def _exponent_atom(self) -> Number:
        return self._nested(self._atom)

    def _mixed(self) -> Number:
        """An atom, or a whole number with a proper fraction after it."""
        whole, start = self._peek(), self._at
        value = self._atom()
        if whole[0] == "number" and whole[1].isdigit() and self._symbol() == r"\frac":
            before = self._at
            part = self._atom()
            if start + 1 == before and isinstance(part, Fraction) and 0 < part < 1:
                return bounded(value + part)
            self._at = before
        return value

    def _atom(self) -> Number:
        kind, token = self._next()
        if kind == "number":
            return literal(token)
        if token in ("(", "[", "{"):
            result = self._nested(self._ratio)
            self._expect(_CLOSING[token])
            return result
        if token == r"\frac":
            return divide(self._nested(self._argument), self._nested(self._argument))
        if token == r"\sqrt":
            return self._nested(self._root)
        if token == r"\pi":
            return math.pi
        if token == r"\infty":
            return math.inf
        raise NotNumeric

    def _root(self) -> Number:
        degree: Number = Fraction(2)
        if self._symbol() == "[":
            self._at += 1
            degree = self._ratio()
            self._expect("]")
        if self._symbol() == "{" and self._tokens[self._at + 1 : self._at + 2] == [("symbol", "}")]:
            self._at += 2
        radicand = self._atom()
        if radicand < 0:
            raise NotNumeric
        return power(radicand, divide(Fraction(1), degree))

    def _argument(self) -> Number:
        """An argument of \\frac: in braces, or the next digit as in LaTeX, or the next atom."""
        kind, token = self._peek()
        if kind == "number" and len(token) > 1 and token.isdigit():
            self._tokens[self._at] = ("number", token[1:])
            return Fraction(int(token[0]))
        return self._atom()

    def _nested(self, rule: Callable[[], Number]) -> Number:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotNumeric
        result = rule()
        self._depth -= 1
        return result

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _symbol(self) -> str:
        kind, token = self._peek()
        return token if kind == "symbol" else ""

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != ("symbol", token):
            raise NotNumeric

    def _expect_end(self) -> None:
        if self._peek() != _END:
            raise NotNumeric
