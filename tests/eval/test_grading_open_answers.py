"""Open answers: what is equal, what is not, and what is left to math-verify."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from adversarial_answers import adversarial_answers
from hypothesis import given
from hypothesis import strategies as st

from eval.grading.normalise import compact, normalise_answer, option_letter, split_label, split_unit
from eval.grading.open_answers import OpenAnswerGrader, equal_without_math_verify
from eval.grading.pool import PoolSettings

EQUAL = [
    ("140", "140°"),
    ("140°", "140"),
    ("140°", r"140^{\circ}"),
    ("140°", "140 degrees"),
    (r"90^\circ", "90"),
    ("8cm", "8"),
    ("8", r"8 \text{ cm}"),
    ("8cm", "8 centimeters"),
    ("400cm²", "400 cm^{2}"),
    ("5cm^2^", "5"),
    ("9米", "9 m"),
    ("16π平方米", r"16\pi"),
    ("6√{3}海里", r"6\sqrt{3}"),
    ("(√{3}+1)小时", r"\sqrt{3}+1"),
    ("3.6秒", "3.6"),
    (r"864 \mbox{ inches}^2", "864"),
    (r"5.4 \text{ cents}", "5.4"),
    (r"\frac{270}7\text{ degrees}", r"\frac{270}{7}"),
    (r"\sqrt{12}", "√12"),
    (r"2\sqrt{3}", "√12"),
    ("2√{13}", r"2 \sqrt{13}"),
    (r"\infty", "∞"),
    ("12", "C. 12"),
    ("12", "(C) 12"),
    ("C", "C. 12"),
    ("C", "(C)"),
    (r"\text{(C)}", "C"),
    ("C", "option C"),
    (r"\text{Evelyn}", "evelyn"),
    (r"10,\!080", "10080"),
    ("58,500", "58500"),
    (r"11,\! 111,\! 111,\! 100", "11111111100"),
    (r"\$32,\!348", "32348"),
    (r"1\frac{4}{5}", "1 4/5"),
    (r"137 \frac{1}{2}", "137.5"),
    ("1.5", "1½"),
    (r"50\%", "0.5"),
    ("50", "50%"),
    ("0.5", r"50\%"),
    ("(3,4]", r"\left(3, 4\right]"),
    ("1,-2", "-2, 1"),
    ("(2,4)", "2,4"),
    (r"\{1,2\}", r"\{2, 1\}"),
    ("x=5", "5"),
    ("5", "x = 5"),
    ("72°", "∠A = 72°"),
    (r"x \in [-2,7]", "[-2,7]"),
    (r"\frac{1}{3}", "0.333333"),
    (r"\frac{4}{3}", "1.3333333333333333"),
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
    ("2.4", r"\frac{12}{5}"),
    (".0000672", r"6.72 \times 10^{-5}"),
    ("1:2", "1/2"),
    ("52_8", "52_{8}"),
    ("12", "１２"),
    ("12", "$12$."),
    ("12", r"\boxed{12}"),
    ("12", "\u200f12\u202c"),
    ("-4", "−4"),
    ("p - q", "p-q"),
]
UNEQUAL = [
    ("140", "14"),
    ("140°", "40°"),
    ("8cm", "8 m"),
    ("8cm", "8 cm^2"),
    ("10√{2}", "10"),
    ("C", "D. 12"),
    ("C", "12"),
    ("12", "C. 13"),
    (r"\text{Evelyn}", "Angela"),
    (r"\frac{1}{3}", "0.33"),
    (r"\pi", "3.14"),
    ("100000.5", "100000.6"),
    ("1000000000001", "1000000000002"),
    (".0000672", "0.0000673"),
    ("(3,4]", "(3,4)"),
    ("(-2,1)", "(1,-2)"),
    ("1,-2", "1,2"),
    ("3, 5, 7", "3, 5"),
    ("50%", "5"),
    ("12", ""),
    ("12", "."),
    ("12", "1" * 30_000),
]
BY_MATH_VERIFY = [
    ("-13x+3", "3-13x", True),
    ("(a+5)(b+2)", "(b+2)(a+5)", True),
    ("6 - 5i", "-5i+6", True),
    (
        r"\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}",
        r"\begin{pmatrix} \frac{1}{5} \\ -\frac{18}{5} \end{pmatrix}",
        True,
    ),
    ("x+1", "x+2", False),
    ("6r^2-4r-24", "6r^2-4r", False),
]


@pytest.fixture(scope="module")
def grader() -> Iterator[OpenAnswerGrader]:
    settings = PoolSettings(workers=1, seconds_per_pair=1.0, megabytes_per_worker=1024, pairs_per_process=100)
    with OpenAnswerGrader(settings) as running:
        yield running


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal_without_math_verify(gold: str, answer: str) -> None:
    assert equal_without_math_verify(gold, answer) is True


@pytest.mark.parametrize(("gold", "answer"), UNEQUAL)
def test_unequal_without_math_verify(gold: str, answer: str) -> None:
    assert equal_without_math_verify(gold, answer) is False


def test_what_is_undecided_is_left_to_math_verify(grader: OpenAnswerGrader) -> None:
    pairs = [(gold, answer) for gold, answer, _ in BY_MATH_VERIFY]
    assert [equal_without_math_verify(*pair) for pair in pairs] == [None] * len(pairs)
    before = grader.pool.counts.compared
    assert grader(pairs) == [verdict for _, _, verdict in BY_MATH_VERIFY]
    assert grader.pool.counts.compared == before + len(pairs)


def test_a_pair_that_occurs_again_is_compared_once(grader: OpenAnswerGrader) -> None:
    before = grader.pool.counts.compared
    assert grader.equal([("x+y", "y+x"), ("1", "2"), ("x+y", "y+x"), ("x+y", "y+x")]) == [
        True,
        False,
        True,
        True,
    ]
    assert grader.pool.counts.compared == before + 1


def test_decided_pairs_start_no_worker() -> None:
    settings = PoolSettings(workers=2, seconds_per_pair=1.0, megabytes_per_worker=1024, pairs_per_process=9)
    with OpenAnswerGrader(settings) as grader:
        assert grader.equal([("140°", "140"), ("1", "2")]) == [True, False]
        assert grader.equal([]) == []
        assert grader.pool.process_ids == []


@given(st.text(max_size=40))
def test_an_answer_equals_itself_unless_it_is_empty(text: str) -> None:
    assert equal_without_math_verify(text, text) is bool(text.strip())


@given(st.text(max_size=60))
def test_normalising_any_text_gives_no_error(text: str) -> None:
    answer = normalise_answer(text)
    compact(answer)
    option_letter(answer)
    split_label(answer)
    split_unit(answer)


@given(
    st.integers(-(10**9), 10**9),
    st.sampled_from(["{}", "${}$", "{}.", "{}°", "{} cm", "\\boxed{{{}}}", "A. {}"]),
)
def test_a_whole_number_is_equal_however_it_is_dressed(value: int, form: str) -> None:
    assert equal_without_math_verify(str(value), form.format(value)) is True
    assert equal_without_math_verify(str(value + 1), form.format(value)) is False


@given(st.integers(1000, 10**12))
def test_thousands_separators_do_not_count(value: int) -> None:
    for separator in (",", ",\\!", "{,}"):
        assert equal_without_math_verify(str(value), f"{value:,}".replace(",", separator)) is True


def test_hostile_answers_are_normalised_in_linear_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The suite's time limit is the witness."""
    marker = tmp_path_factory.mktemp("adversarial") / "marker"
    for answer in adversarial_answers(str(marker)):
        split_unit(split_label(normalise_answer(answer))[1])
    assert not marker.exists()
