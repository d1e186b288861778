"""Numeric LaTeX as numbers: what it is worth, what is none, and the bounds that hostile text meets."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from adversarial_answers import adversarial_answers
from hypothesis import given
from hypothesis import strategies as st

from eval.grading.latex_number import NumberList, latex_number, latex_value

SMALL = st.integers(-50, 50)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("--3", 3),
        ("2.50", Fraction(5, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        (r"\frac{1}{2}", Fraction(1, 2)),
        (r"\dfrac{1}{2}", Fraction(1, 2)),
        (r"-\frac{24}{25}", Fraction(-24, 25)),
        (r"\frac43", Fraction(4, 3)),
        (r"\frac 59", Fraction(5, 9)),
        (r"\frac9{19}", Fraction(9, 19)),
        (r"\frac{270}7", Fraction(270, 7)),
        ("7/3", Fraction(7, 3)),
        ("1/2/2", Fraction(1, 4)),
        (r"1\frac{4}{5}", Fraction(9, 5)),
        (r"137 \frac{1}{2}", Fraction(275, 2)),
        (r"-1\frac{1}{2}", Fraction(-3, 2)),
        (r"3\frac{3}{2}", Fraction(9, 2)),
        (r"(2)\frac{1}{2}", 1),
        ("2^{10}", 1024),
        ("2^10", 1024),
        ("2^{-1}", Fraction(1, 2)),
        ("2^-1", Fraction(1, 2)),
        ("-2^2", -4),
        ("(-2)^2", 4),
        (r"\sqrt{16}", 4),
        (r"\sqrt{\frac{9}{4}}", Fraction(3, 2)),
        ("√16", 4),
        (r"3 \cdot 2^{5}", 96),
        (r"6\times6", 36),
        ("2(3+4)", 14),
        ("(1+1)(2+1)", 6),
        ("50%", Fraction(1, 2)),
        (r"12.5 \%", Fraction(1, 8)),
        ("4!", 24),
        ("2:3", Fraction(2, 3)),
        (r"6.72 \times 10^{-5}", Fraction(672, 10**7)),
        ("1e3", 1000),
        (r"\left(\frac{1}{2}\right)^2", Fraction(1, 4)),
        ("5-2-3-1-4", -5),
    ],
)
def test_rational_values_are_exact(text: str, value: Fraction | int) -> None:
    found = latex_number(text)
    assert isinstance(found, Fraction)
    assert found == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\sqrt{12}", math.sqrt(12)),
        ("√12", math.sqrt(12)),
        (r"2\sqrt3", 2 * math.sqrt(3)),
        ("5sqrt(3)", 5 * math.sqrt(3)),
        (r"10 \sqrt{ } 10", 10 * math.sqrt(10)),
        (r"\sqrt[3]{2}", 2 ** (1 / 3)),
        ("2π", 2 * math.pi),
        ("3pi", 3 * math.pi),
        (r"\frac{3 \sqrt{7} - \sqrt{3}}{2}", (3 * math.sqrt(7) - math.sqrt(3)) / 2),
        (r"80-2 \pi", 80 - 2 * math.pi),
        (r"4 \pi(3-2 \sqrt{2})", 4 * math.pi * (3 - 2 * math.sqrt(2))),
        (r"40\pi/3", 40 * math.pi / 3),
        (r"\frac{2}{\sqrt{\pi}}", 2 / math.sqrt(math.pi)),
        (r"-\infty", -math.inf),
        ("∞", math.inf),
    ],
)
def test_irrational_values_are_floats(text: str, value: float) -> None:
    assert latex_number(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "brackets", "items"),
    [
        ("1,-2", "", (1, -2)),
        ("3, 5, 7", "", (3, 5, 7)),
        ("1; 2", "", (1, 2)),
        ("(3,-4)", "()", (3, -4)),
        ("(3,4]", "(]", (3, 4)),
        (r"\left[ 1, \frac{3}{2} \right]", "[]", (1, Fraction(3, 2))),
        (r"\{1, 2\}", "{}", (1, 2)),
        (r"\{7\}", "{}", (7,)),
        (r"(2,\infty)", "()", (2, math.inf)),
    ],
)
def test_lists_keep_their_brackets(text: str, brackets: str, items: tuple[Fraction, ...]) -> None:
    assert latex_value(text) == NumberList(brackets, items)
    assert latex_number(text) is None


NO_NUMBERS = (
    *(
        "",
        " ",
        "x",
        "2x",
        "12 cm",
        "60°",
        "1 2",
        "1.2.3",
        "(1",
        "1)",
        "{1",
        "1+",
        "*1",
        "1,,2",
        "i",
        "--",
        "()",
    ),
    *(
        r"\frac{1}",
        r"\sqrt{-1}",
        "(-8)^{1/2}",
        "1/0",
        "0^{-1}",
        "(-1)!",
        "1.5!",
        "∞-∞",
        r"\frac{\infty}{\infty}",
    ),
    *(r"\foo", "52_8", "0x10", "1_000", "__import__('os')", "\u0661\u0662", "\x0012", "\\", "\ud800"),
)
TOO_MUCH = (
    *("9^{9^{9}}", "9^{9999}", "2^{2^{2^{2^{2^{2}}}}}", "(9^{99})^{9999999}", "0.1^{-999999999}", "501!"),
    *("((9!)!)!", "9" * 3000, "(" * 61 + "1" + ")" * 61, "1+" * 3000 + "1"),
)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_other_text_is_no_number(text: str) -> None:
    assert latex_value(text) is None


@given(a=SMALL, b=SMALL, c=SMALL, d=st.integers(1, 50))
def test_arithmetic_is_that_of_fractions(a: int, b: int, c: int, d: int) -> None:
    text = rf"\frac{{{a}}}{{{d}}} + ({b}) \cdot ({c}) - {d}^{{2}}"
    assert latex_number(text) == Fraction(a, d) + b * c - d**2


@given(st.decimals(-(10**6), 10**6, places=4))
def test_a_decimal_is_worth_what_it_says(value: object) -> None:
    assert latex_number(f"{value:f}") == Fraction(str(value))


@given(st.text(alphabet=r"0123456789.+-*/^(){}[],\ frasqtpi%!:", max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    value = latex_value(text)
    for item in value.items if isinstance(value, NumberList) else [value]:
        assert item is None or isinstance(item, Fraction) or not math.isnan(item)


@pytest.mark.parametrize("text", TOO_MUCH)
def test_what_is_too_large_deep_or_long_is_no_number(text: str) -> None:
    assert latex_value(text) is None


def test_hostile_text_ends_at_once_and_runs_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    marker = tmp_path_factory.mktemp("adversarial") / "marker"
    for answer in adversarial_answers(str(marker)):
        latex_value(answer)
    assert not marker.exists()
