"""AIME: whole numbers from 0 to 999, however they are written; the mirror's prompt suffix is dropped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import shared_records

from eval.protocols import load_protocol

PROTOCOL = load_protocol("aime24")
RECORD = {"id": 60, "problem": "How many?", "answer": "073"}
QUESTION = PROTOCOL.questions([RECORD])[0]


def unused(pairs: object) -> list[bool]:
    raise AssertionError("AIME answers are whole numbers")


@pytest.mark.parametrize(
    "response",
    [
        "\\boxed{73}",
        "\\boxed{073}",
        "\\boxed{73.}",
        "The answer is 73.",
        "The answer is **73**.",
        "The final answer is $073$.",
        "Therefore, the answer is 73, as claimed.",
        "<answer>73</answer>",
        "first \\boxed{12}, but then \\boxed{73}",
    ],
)
def test_an_answer_is_read_with_or_without_a_box(response: str) -> None:
    extraction = PROTOCOL.extract(QUESTION, response)
    assert extraction == "73"
    assert PROTOCOL.grade([QUESTION], [extraction], "current", unused) == [True]


@pytest.mark.parametrize(
    "response",
    [
        "",
        "73",
        "I get 73",
        "The answer is unknown.",
        "\\boxed{x}",
        "The answer is 7.3",
        "The answer is 73,000",
    ],
)
def test_what_states_no_whole_number_is_no_answer(response: str) -> None:
    extraction = PROTOCOL.extract(QUESTION, response)
    assert extraction is None
    assert PROTOCOL.grade([QUESTION], [extraction], "current", unused) == [False]


@given(st.integers(0, 999), st.integers(0, 999))
def test_two_numbers_are_equal_when_they_are_one(gold: int, answer: int) -> None:
    (question,) = PROTOCOL.questions([{**RECORD, "answer": gold}])
    extraction = PROTOCOL.extract(question, f"\\boxed{{{answer:03d}}}")
    assert PROTOCOL.grade([question], [extraction], "current", unused) == [gold == answer]


def test_a_suffix_that_asks_for_a_box_is_dropped_from_the_problem() -> None:
    suffixed = {"problem": "How many?\nPut it in \\boxed{}.", "answer": "73"}
    assert PROTOCOL.questions([suffixed])[0].prompt == PROTOCOL.questions([RECORD])[0].prompt


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "7.5"}, "7.5"),
        ({"answer": "1000"}, "1000"),
        ({"answer": None}, "answer"),
        ({"problem": ""}, "problem"),
    ],
)
def test_a_malformed_record_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"record number 2.*{message}"):
        PROTOCOL.questions([RECORD, {**RECORD, **changes}])


@pytest.mark.parametrize("year", ["24", "25"])
def test_the_public_mirrors_are_read(year: str) -> None:
    questions = PROTOCOL.questions(shared_records(f"aime{year}/test.jsonl"))
    assert len({question.id for question in questions}) == len(questions) == 30
    assert all(question.prompt.count("\\boxed{}") == 1 for question in questions)
    responses = [f"The answer is {int(question.answer):03d}." for question in questions]
    extractions = [PROTOCOL.extract(q, text) for q, text in zip(questions, responses, strict=True)]
    assert all(PROTOCOL.grade(questions, extractions, "current", unused))
