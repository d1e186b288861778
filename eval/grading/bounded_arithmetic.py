"""Arithmetic on answers that stays bounded: exact where the numbers are rational, else in floats."""

from __future__ import annotations

import math
from fractions import Fraction

Number = Fraction | float

MAX_BITS = 8192
"""Exact numerators and denominators are at most this long; larger results are no numbers."""

_MAX_FACTORIAL = 500


class NotNumeric(ValueError):
    """What was read is no number, or too long, deep or large to be taken as one."""


def literal(token: str) -> Fraction:
    """A decimal number with an optional exponent. Raises NotNumeric for one that is too long."""
    if len(token) > MAX_BITS // 4:
        raise NotNumeric
    return _bounded_fraction(Fraction(token))


def bounded(value: Number) -> Number:
    """The value itself. Raises NotNumeric for a NaN, and for a fraction that is too long."""
    if isinstance(value, Fraction):
        return _bounded_fraction(value)
    if math.isnan(value):
        raise NotNumeric
    return value


def _bounded_fraction(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise NotNumeric
    return value


def divide(left: Number, right: Number) -> Number:
    """Raises NotNumeric for a result out of bounds, ZeroDivisionError for an exact zero."""
    return bounded(left / right)


def power(base: Number, exponent: Number) -> Number:
    """base ** exponent; exact where both are rational and the result is.

    Raises NotNumeric for a result out of bounds and a root of what is negative.
    """
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits * abs(exponent.numerator) > MAX_BITS:
                raise NotNumeric
            return Fraction(base**exponent.numerator)
        if exponent == Fraction(1, 2) and base >= 0:
            roots = math.isqrt(base.numerator), math.isqrt(base.denominator)
            if roots[0] ** 2 == base.numerator and roots[1] ** 2 == base.denominator:
                return Fraction(*roots)
    if base < 0:
        raise NotNumeric
    return bounded(float(base) ** float(exponent))


def factorial(value: Number) -> Fraction:
    """Raises NotNumeric unless the value is a whole number from 0 to 500."""
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= _MAX_FACTORIAL:
        raise NotNumeric
    return Fraction(math.factorial(value.numerator))
