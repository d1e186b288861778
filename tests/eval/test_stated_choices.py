"""Which choice a response states, in the forms that models write; and nothing where it states none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.extraction.choices import stated_choice
from eval.extraction.numbers import stated_number
from eval.extraction.restatements import restated

LENGTHS = ("10 cm", "15 cm", "31.4 cm", "62.8 cm")
ANIMALS = ("Population will decrease", "Population will increase", "None of the above")


@pytest.mark.parametrize(
    "response",
    [
        "B",
        "(b)",
        "15 cm",
        "15cm.",
        "The answer is B.",
        "So the answer is definitely **(B) 15 cm**.",
        "Answer: B",
        "<Thought process>: <<A and C are too long.>> <Answer>: <<B>>",
        "<think>A or C?</think><answer>B</answer>",
        r"Hence the length is \boxed{\text{(B) } 15}.",
        r"\boxed{B}",
        "所以答案是B。",
        "正确选项是（B）15。",
        "B is the correct option.",
        "(B) 15 cm",
        "A: 15 cm",
        "I measured it:\n\nB",
        "It is 3 times 5. Therefore, the rope is 15 cm long.",
        "If it were 10 cm, the answer would be A. The answer is B.",
        "The answer is (B). Option (A) is incorrect because it is shorter.",
    ],
)
def test_a_stated_choice_is_found_in_any_form(response: str) -> None:
    assert stated_choice(response, LENGTHS, "How long is the rope?") == "B"


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I cannot see the image.",
        "It is not possible to determine the length. Please provide the figure.",
        "If it is short, the answer is (A).\nIf it is long, the answer is (B).",
        "The answer cannot be determined.",
        "Neither 10 cm nor 15 cm fit, and 31.4 cm",
        "The correct answer is unclear.",
    ],
)
def test_nothing_is_guessed(response: str) -> None:
    assert stated_choice(response, LENGTHS, "How long is the rope?") is None


def test_words_that_only_one_choice_has_name_it() -> None:
    response = "The fish population will likely decrease, as fish feed on algae."
    assert stated_choice(response, ANIMALS, "What happens to fish without algae?") == "A"
    assert stated_choice("It may decrease or increase.", ANIMALS, "What happens to fish?") is None


@pytest.mark.parametrize(
    ("response", "question", "answer"),
    [
        ("The bed is much larger than the kitten.", "Is the bed much larger than the kitten?", True),
        ("Blue is not the maximum.", "Is Blue the maximum?", False),
        ("There are more red cars than blue cars.", "Are there fewer red cars than blue cars?", False),
        ("We cannot tell whether Blue is the maximum.", "Is Blue the maximum?", None),
        ("It is a picture of a street.", "Is Blue the maximum?", None),
    ],
)
def test_a_restated_yes_no_question_is_affirmed_or_denied(
    response: str, question: str, answer: bool | None
) -> None:
    assert restated(response, question) is answer


@pytest.mark.parametrize(
    ("response", "question", "number"),
    [
        ("7", "How many?", "7"),
        ("The total is **1,238 miles**.", "How many miles?", "1238"),
        ("So the answer is 4.", "How many?", "4"),
        ("3 + 4 = 7\n\nTherefore, there are 7 objects left.", "How many objects are left?", "7"),
        ("There were 4 flocks with at least 17 birds.", "How many flocks had at least 17 birds?", "4"),
        ("There are three objects left.", "How many objects are left?", "3"),
        (
            "The model has 9 dots in 3 groups. There are 3 dots in each group.",
            "The model has 9 dots. There are (_) dots in each group.",
            "3",
        ),
        (r"\boxed{65}", "What is the angle?", "65"),
        ("I cannot tell the age gap between the two people.", "What is the age gap?", None),
        ("", "How many?", None),
        ("Many.", "How many?", None),
    ],
)
def test_a_stated_number_is_found(response: str, question: str, number: str | None) -> None:
    assert stated_number(response, question) == number


PIECES = st.sampled_from(
    [
        "answer is ",
        "(A)",
        "B",
        "\\boxed{",
        "}",
        "15 cm",
        "if ",
        "Therefore, ",
        "\n",
        ". ",
        "= 3",
        "no ",
        "\x00",
        "‮",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_read_without_an_error(text: str) -> None:
    letter = stated_choice(text, LENGTHS, "How long is the rope?")
    assert letter is None or letter in "ABCD"
    number = stated_number(text, "How long is the rope?")
    assert number is None or float(number) >= 0


@pytest.mark.parametrize(
    "piece", ["answer: ", "answer is ", " ", "(", "{", "\\text{", "1", "\\frac{", "if a", "A) ", "a b", "\n"]
)
def test_long_responses_are_read_in_linear_time(piece: str) -> None:
    """No limit on the clock: a quadratic rule would take hours on a response of a megabyte."""
    text = piece * (50_000 // len(piece))
    assert stated_choice(text, LENGTHS, "How long?") in (None, "A")
    assert stated_number(text, "How long?") is None or piece == "1"
    assert restated(text, "Is Blue the maximum?") is None
