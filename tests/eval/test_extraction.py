"""Answers out of untrusted responses: the last balanced box, and whole numbers in one canonical form."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.extraction.boxed import boxed_integer, last_boxed, normalise_integer

LATEX = st.text(alphabet="{}\\ boxed123.", max_size=80)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{73}", "73"),
        (r"first \boxed{1}, then \boxed{2}.", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {7}", "7"),
        (r"\boxed{}", ""),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{1} and then cut off: \boxed{2", "1"),
        (r"{ left open \boxed{5}", "5"),
        (r"} closed first \boxed{5} }", "5"),
        (r"\\boxed{5}", None),
        (r"boxed{5}", None),
        (r"\boxed 5", None),
        (r"\boxed{{5}", None),
        ("", None),
        ("\\", None),
    ],
)
def test_the_last_balanced_box_is_found(text: str, content: str | None) -> None:
    assert last_boxed(text) == content


@given(
    before=LATEX, content=st.text(alphabet="0123456789 abc", max_size=20), after=st.text("ab 1.", max_size=20)
)
def test_a_box_at_the_end_wins_over_whatever_stands_before_it(before: str, content: str, after: str) -> None:
    assert last_boxed(f"{before} \\boxed{{{content}}}{after}") == content


@given(st.text())
def test_any_text_is_extracted_from_without_an_error(text: str) -> None:
    content = last_boxed(text)
    assert content is None or content in text
    assert boxed_integer(text) is None or content is not None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("73", "73"),
        ("073", "73"),
        ("000", "0"),
        ("-0", "0"),
        ("+5", "5"),
        ("-05", "-5"),
        (" 73 ", "73"),
        ("73.", "73"),
        ("73.00", "73"),
        ("$73$", "73"),
        ("73°", "73"),
        ("73 °.", "73"),
        (r"73^\circ", "73"),
        (r"73^{\circ}", "73"),
        (r"73 ^ { \circ }", "73"),
        (r"73\degree", "73"),
        ("73 degrees", "73"),
        ("1 degree", "1"),
        ("73.5", None),
        ("7 3", None),
        ("7,3", None),
        ("73 cm", None),
        ("x", None),
        ("", None),
        ("--5", None),
        ("5-5", None),
        ("٧٣", None),
        ("1e3", None),
        ("0x10", None),
        ("__import__('os')", None),
    ],
)
def test_whole_numbers_have_one_canonical_form(text: str, number: str | None) -> None:
    assert normalise_integer(text) == number


@given(value=st.integers(), zeros=st.integers(0, 5))
def test_a_canonical_number_is_how_python_writes_it(value: int, zeros: int) -> None:
    sign = "-" if value < 0 else ""
    written = f"{sign}{'0' * zeros}{abs(value)}"
    assert normalise_integer(written) == str(value)
    assert boxed_integer(f"so \\boxed{{{written}}}.") == str(value)


def test_a_number_is_never_too_long() -> None:
    digits = "9" * (10 * sys.get_int_max_str_digits())
    assert boxed_integer(f"\\boxed{{{digits}}}") == digits


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        "}" * 200_000,
        "\\boxed{" * 50_000,
        "\\boxed{" * 50_000 + "}" * 50_000,
        "\\boxed" + " " * 200_000,
        "\\boxed{" + "0" * 200_000 + "x}",
        "\\boxed{7" + " " * 200_000 + "x}",
        "\\boxed{7" + " " * 100_000 + "°" + " " * 100_000 + "x}",
        "\\boxed{7.0" + "0" * 200_000 + "x}",
        "\\boxed{7" + "^ { " * 60_000 + "}",
        "\\" * 200_001,
    ],
    ids=[
        "open",
        "closed",
        "boxes",
        "nested",
        "spaces",
        "zeros",
        "gap",
        "gaps",
        "decimals",
        "carets",
        "slashes",
    ],
)
def test_hostile_text_is_read_in_one_pass(text: str) -> None:
    """200 kB that would keep a backtracking pattern busy for hours; the suite's time limit is the witness."""
    assert boxed_integer(text) in (None, "0")
