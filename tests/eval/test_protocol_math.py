"""MATH and MATH-500: the boxed answer, compared as an open one."""

from __future__ import annotations

from typing import Any

import pytest
from shared_data import shared_records

from eval.extraction.boxed import last_boxed
from eval.grading.open_answers import equal_without_math_verify
from eval.protocols import load_protocol

PROTOCOL = load_protocol("math500")
RECORD: dict[str, Any] = {
    "problem": "What is one half?",
    "solution": "It is $\\boxed{\\frac{1}{2}}$.",
    "answer": "\\frac{1}{2}",
    "subject": "Algebra",
    "level": 2,
    "unique_id": "test/algebra/1.json",
}
ORIGINAL: dict[str, Any] = {
    "problem": RECORD["problem"],
    "solution": RECORD["solution"],
    "type": "Algebra",
    "level": "Level 2",
}


def decided(pairs: list[tuple[str, str]]) -> list[bool]:
    return [bool(equal_without_math_verify(*pair)) for pair in pairs]


def test_both_schemas_give_the_same_question_but_for_its_id() -> None:
    (first,), (second,) = PROTOCOL.questions([RECORD]), PROTOCOL.questions([ORIGINAL])
    assert (first.prompt, first.answer, first.labels) == (second.prompt, second.answer, second.labels)
    assert first.answer == "\\frac{1}{2}"
    assert first.labels == {"subject": ("Algebra",), "level": ("2",)}
    assert first.id == "test/algebra/1.json"


def test_a_problem_that_occurs_twice_has_two_ids() -> None:
    first, second = PROTOCOL.questions([ORIGINAL, ORIGINAL])
    assert first.id != second.id


@pytest.mark.parametrize(
    ("solution", "answer"), [(r"so $\boxed 2$.", "2"), (r"so \fbox{7}.", "7"), (r"\boxed{ x } so", "x")]
)
def test_the_gold_answer_is_read_from_every_box_of_official_solutions(solution: str, answer: str) -> None:
    (question,) = PROTOCOL.questions([{**ORIGINAL, "solution": solution}])
    assert question.answer == answer


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"solution": "no box"}, "solution"), ({"problem": None}, "problem"), ({"level": None}, "level")],
)
def test_a_malformed_record_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"number 1.*{message}"):
        PROTOCOL.questions([{**ORIGINAL, **changes}])


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("\\boxed{\\frac{1}{2}}", True),
        ("\\boxed{0.5}", True),
        ("<answer>1/2</answer>", True),
        ("The answer is $\\frac12$.", True),
        ("\\boxed{2}", False),
        ("It might be one half", False),
        ("", False),
    ],
)
def test_the_stated_answer_is_compared_as_an_open_one(response: str, right: bool) -> None:
    (question,) = PROTOCOL.questions([RECORD])
    extraction = PROTOCOL.extract(question, response)
    assert PROTOCOL.grade([question], [extraction], "current", decided) == [right]


def test_the_official_solutions_are_right() -> None:
    records = shared_records("math500/test.jsonl")
    questions = PROTOCOL.questions(records)
    assert len({question.id for question in questions}) == len(questions) == 500
    extractions = [
        PROTOCOL.extract(q, record["solution"]) for q, record in zip(questions, records, strict=True)
    ]
    assert extractions == [(last_boxed(record["solution"]) or "").strip() or None for record in records]
    verdicts = PROTOCOL.grade(questions, extractions, "current", decided)
    assert sum(map(bool, verdicts)) >= 497
