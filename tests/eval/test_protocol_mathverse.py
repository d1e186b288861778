"""MathVerse: exact match with normalised gold answers, and nothing guessed where a judge would be needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from shared_data import shared_records

from eval.protocols.base import BenchmarkQuestion
from eval.protocols.mathverse import TEXT_ONLY, VERSIONS, MathVerse

MATHVERSE = MathVerse()
CHOICES = "\nChoices:\nA:40°\nB:60°\nC:120°\nD:140°"


def record(**fields: Any) -> dict[str, Any]:
    question = f"How large is angle CED?{CHOICES}"
    return {
        "sample_index": "1",
        "problem_index": "1",
        "problem_version": "Text Dominant",
        "question": question,
        "image": "images/1.png",
        "answer": "D",
        "question_type": "multi-choice",
        "metadata": {"split": "testmini", "source": "Made", "subject": "Plane Geometry", "subfield": "Angle"},
        "query_wo": f"Please directly answer the question.\nQuestion: {question}",
        "query_cot": f"Please first conduct reasoning.\nQuestion: {question}",
    } | fields


def question(**fields: Any) -> BenchmarkQuestion:
    return MATHVERSE.questions([record(**fields)])[0]


def no_judge(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    raise AssertionError("MathVerse is scored by exact match")


def graded(extraction: str | None, **fields: Any) -> bool | None:
    return MATHVERSE.grade([question(**fields)], [extraction], "current", no_judge)[0]


FREE: dict[str, Any] = {"question_type": "free-form", "question": "How large is it?"}


def test_text_only_has_no_image() -> None:
    assert question(problem_version=TEXT_ONLY, image="").images == ()
    assert "<image>" not in question(problem_version=TEXT_ONLY, image="").prompt
    assert question().prompt.startswith("<image>\nPlease first conduct reasoning.")
    assert question().images == ("images/1.png",)


@pytest.mark.parametrize(
    ("gold", "extraction", "verdict"),
    [
        ("D", "D", True),
        ("D", "(D)", True),
        ("D", "140 degrees", True),
        ("D", "C", False),
        ("(C)", "C", True),
        ("140°", "D", True),
        ("140掳", "D", True),
        ("D", None, False),
        ("D", "", False),
        ("D", "about a right angle", None),
        ("C\nD", "D", None),
        ("C\nD", "A", False),
    ],
)
def test_letters_are_right_or_wrong(gold: str, extraction: str | None, verdict: bool | None) -> None:
    assert graded(extraction, answer=gold) is verdict


@pytest.mark.parametrize(
    ("gold", "extraction", "verdict"),
    [
        ("118掳T", "118° T", True),
        ("62^\\circ ", "62", True),
        ("Area $=9 \\pi \\mathrm{cm}^{2}$", "9π cm^2", True),
        ("\\frac{\\sqrt{30}}{2}", "$\\frac{\\sqrt{30}}{2}$", True),
        ("(-2,1]", "(-2, 1]", True),
        ("4 + 4\\sqrt{3}", "4\\sqrt{3}+4", None),
        ("0.5", "1/2", None),
        ("17", "18", None),
        ("17", None, False),
    ],
)
def test_free_form_answers_are_right_or_undecided(
    gold: str, extraction: str | None, verdict: bool | None
) -> None:
    assert graded(extraction, answer=gold, **FREE) is verdict


@pytest.mark.parametrize(
    ("response", "extraction"),
    [
        (r"So it is \boxed{62^\circ}.", r"62^\circ"),
        ("Therefore, the answer is 62.", "62"),
        ("62", "62"),
        ("", None),
        ("I see a figure. " * 50, None),
    ],
)
def test_free_form_extraction(response: str, extraction: str | None) -> None:
    assert MATHVERSE.extract(question(**FREE), response) == extraction


def test_the_overall_score_is_the_mean_of_five_versions_without_text_only() -> None:
    questions = [
        question(problem_version=version, problem_index=str(number), image="images/1.png")
        for version in (*VERSIONS, TEXT_ONLY)
        for number in range(2)
    ]
    correct = [True, True, True, False, False, False, True, True, False, False, True, True]
    assert MATHVERSE.metrics(questions, correct) == {"accuracy_of_versions": pytest.approx(0.5)}
    assert MATHVERSE.metrics(questions[2:], correct[2:]) == {}


@pytest.mark.parametrize(
    "fields", [{"problem_version": "Vision"}, {"metadata": None}, {"query_cot": ""}, {"image": None}]
)
def test_a_malformed_record_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="MathVerse problem '1'"):
        question(**fields)


def test_the_gold_answers_of_text_only_are_right_or_undecided() -> None:
    questions = MATHVERSE.questions(shared_records("mathverse/testmini_text_only.jsonl.gz"))
    verdicts = MATHVERSE.grade(questions, [each.answer for each in questions], "current", no_judge)
    assert len(verdicts) == 788
    assert False not in verdicts
    assert verdicts.count(None) <= 10
