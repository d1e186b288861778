"""MathVision: published verdicts and cells from recorded answers; own extraction from responses."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from adversarial_answers import adversarial_answers
from shared_data import shared_data, shared_records

from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkQuestion

PROTOCOL = load_protocol("mathvision")
OUTPUTS = {
    "Gemini-Pro-CoT": 0.99,
    "InternLM-XComposer2-VL": 0.98,
    "LLaVA-v1.5-7B": 0.98,
    "Qwen-VL-Max-CoT": 0.98,
    "Random-Chance": 0.98,
    "SPHINX-v2": 0.99,
}
"""Recorded outputs, and the item agreement that extraction from their responses is held to."""
MAX_DIFFERENCES = 3


def record(**changes: Any) -> dict[str, Any]:
    base = {"id": "7", "question": "How long is the rope?\n<image1>", "options": [], "answer": "60"}
    return {**base, "level": 2, "subject": "arithmetic", "image": "images/7.jpg", "solution": None, **changes}


def question(**changes: Any) -> BenchmarkQuestion:
    return PROTOCOL.questions([record(**changes)])[0]


def choice(answer: str, *options: str) -> BenchmarkQuestion:
    return question(answer=answer, options=list(options))


def unused(pairs: object) -> list[bool]:
    raise AssertionError("MathVision is graded by its own rules")


def is_right(asked: BenchmarkQuestion, extraction: str | None) -> bool | None:
    return PROTOCOL.grade([asked], [extraction], "current", unused)[0]


@pytest.fixture(scope="module")
def questions() -> list[BenchmarkQuestion]:
    return PROTOCOL.questions(shared_records("mathvision/test.jsonl.gz"))


def test_a_question_has_one_image_its_options_and_its_labels() -> None:
    asked = choice("B", "10 cm", "20 cm")
    assert asked.prompt.count("<image>") == len(asked.images) == 1
    assert "\\boxed{}" in asked.prompt
    assert asked.prompt.endswith("How long is the rope?\n<image1>\n(A) 10 cm\n(B) 20 cm")
    assert asked.labels == {
        "subject": ("arithmetic",),
        "level": ("level2",),
        "subject_level": ("arithmetic_level2",),
    }


def test_options_that_the_image_shows_are_not_written_again() -> None:
    assert "(A)" not in choice("B", *"ABCDE").prompt


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": ""}, "'7'.*'answer'"),
        ({"options": "ABCDE"}, "'7'.*'options'"),
        ({"options": ["1", "2"], "answer": "C"}, "'7'.*'C'"),
        ({"image": None}, "'7'.*'image'"),
        ({"subject": None}, "'7'.*'subject'"),
    ],
)
def test_a_malformed_record_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        question(**changes)


@pytest.mark.parametrize(
    ("asked", "extraction", "right"),
    [
        (question(), "60", True),
        (question(), "60.0", True),
        (question(), "60.004", True),
        (question(), "60.01", False),
        (question(), "sixty", False),
        (question(), "", False),
        (question(), None, False),
        (question(answer="$4 \\pi$"), "4\\pi", True),
        (question(answer="(3,-4)"), "(3, -4)", True),
        (question(answer="(3,-4)"), "(-4,3)", False),
        (question(answer="6.5"), "\\frac{13}{2}", True),
        (choice("B", "10", "20"), "b", True),
        (choice("B", "10", "20"), "20", True),
        (choice("B", "10", "20"), "A", False),
        (choice("B", "$\\frac{1}{4}$", "$2 \\sqrt{3}$"), "2\\sqrt{3}", True),
        (choice("A", "$\\frac{1}{4}$", "$2$"), "\\frac{1}{4}}ofall.theansweris:\\frac{1}{4", True),
        (choice("B", "$45^{\\circ}$", "$60^{\\circ}$"), "60", False),
    ],
)
def test_letters_values_and_two_decimals(
    asked: BenchmarkQuestion, extraction: str | None, right: bool
) -> None:
    assert is_right(asked, extraction) is right


@pytest.mark.parametrize(
    ("asked", "response", "extraction"),
    [
        (question(), "So 20 + 40 = \\boxed{60}.", "60"),
        (question(), "\\boxed{20} and then \\boxed{60 \\text{ cm}}", "60"),
        (question(), "\\boxed{3 \\cdot 20 = 60}", "60"),
        (question(), "The answer is 60.", "60"),
        (question(), "60", "60"),
        (question(), "I see a rope.", None),
        (question(), "", None),
        (choice("B", "10", "20"), "\\boxed{\\text{B}}", "B"),
        (choice("B", "10", "20"), "\\boxed{20}", "20"),
        (choice("B", "10", "20"), "It is \\boxed{20}. The answer is (B).", "B"),
        (choice("B", "10", "20"), "The answer is (B).", "B"),
        (choice("B", "10", "20"), "(B) 20", "B"),
        (choice("B", "10", "20"), "B", "B"),
        (choice("B", "10", "20"), "The picture is unclear.", None),
    ],
)
def test_the_answer_is_found_in_a_response(
    asked: BenchmarkQuestion, response: str, extraction: str | None
) -> None:
    assert PROTOCOL.extract(asked, response) == extraction


def test_hostile_responses_are_read_and_graded_without_an_error(tmp_path: Any) -> None:
    marker = tmp_path / "marker"
    for asked in (question(), choice("B", "10", "20")):
        for response in adversarial_answers(str(marker)):
            is_right(asked, PROTOCOL.extract(asked, response))
            is_right(asked, response)
    assert not marker.exists()


@pytest.mark.parametrize("system", OUTPUTS)
def test_published_verdicts_and_cells_are_met_from_the_recorded_answer(
    system: str, questions: list[BenchmarkQuestion]
) -> None:
    rows = shared_records(f"mathvision/outputs/{system}.jsonl.gz")
    assert [row["id"] for row in rows] == [asked.id for asked in questions]
    verdicts = PROTOCOL.grade(questions, [row["model_answer"] for row in rows], "current", unused)
    different = [
        asked
        for asked, row, verdict in zip(questions, rows, verdicts, strict=True)
        if verdict != row["correct"]
    ]
    assert len(different) <= MAX_DIFFERENCES
    published = json.loads((shared_data() / f"mathvision/outputs/{system}.scores.json").read_text())
    excused = {"all", *(name for asked in different for name in cells_of(asked))}
    found = cell_counts(questions, verdicts)
    for name, score in published.items():
        if (cell := cell_name(name)) not in excused:
            assert found[cell] == score.split("=")[0], cell
    if not different:
        assert found["all"] == published["-all"].split("=")[0]


@pytest.mark.parametrize("system", OUTPUTS)
def test_answers_from_responses_agree_with_the_published_verdicts(
    system: str, questions: list[BenchmarkQuestion]
) -> None:
    rows = shared_records(f"mathvision/outputs/{system}.jsonl.gz")
    extractions = [PROTOCOL.extract(a, row["response"]) for a, row in zip(questions, rows, strict=True)]
    verdicts = PROTOCOL.grade(questions, extractions, "current", unused)
    agreement = sum(v == row["correct"] for v, row in zip(verdicts, rows, strict=True)) / len(rows)
    assert agreement >= OUTPUTS[system]


def cells_of(asked: BenchmarkQuestion) -> list[str]:
    return [label for labels in asked.labels.values() for label in labels]


def cell_name(published: str) -> str:
    """The label of a published cell; "-level1_algebra" and "algebra_level1" are the same one."""
    name = published.removeprefix("-")
    level, _, subject = name.partition("_")
    return f"{subject}_{level}" if level.startswith("level") and subject else name


def cell_counts(questions: list[BenchmarkQuestion], verdicts: list[bool | None]) -> dict[str, str]:
    """Cell -> "right/all", as published."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for asked, verdict in zip(questions, verdicts, strict=True):
        for cell in ("all", *cells_of(asked)):
            total[cell] += 1
            right[cell] += bool(verdict)
    return {cell: f"{right[cell]}/{total[cell]}" for cell in total}
