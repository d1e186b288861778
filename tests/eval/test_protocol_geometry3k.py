"""Geometry3K in EasyR1's schema: images for each <image>, open answers."""

from __future__ import annotations

from typing import Any

import pytest

from eval.grading.open_answers import equal_without_math_verify
from eval.protocols import load_protocol

PROTOCOL = load_protocol("geometry3k")
RECORD: dict[str, Any] = {
    "images": ["test.parquet::images::0::0"],
    "problem": "<image>Find x.",
    "answer": "12\\sqrt{3}",
}


def decided(pairs: list[tuple[str, str]]) -> list[bool]:
    return [bool(equal_without_math_verify(*pair)) for pair in pairs]


def test_a_question_keeps_its_images_in_order() -> None:
    two = {**RECORD, "images": ["a.png", "b.png"], "problem": "<image><image>Find x."}
    (question,) = PROTOCOL.questions([two])
    assert question.images == ("a.png", "b.png")
    assert question.prompt.startswith("<image><image>Find x.\n")
    assert "<think>" in question.prompt and "\\boxed{}" in question.prompt


def test_the_same_text_with_another_image_is_another_question() -> None:
    first, second = PROTOCOL.questions([RECORD, {**RECORD, "images": ["other.png"]}])
    assert first.id != second.id


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": []}, "'images'"),
        ({"images": [{"bytes": b""}]}, "'images'"),
        ({"problem": "Find x."}, "1 images for 0 <image>"),
        ({"answer": None}, "'answer'"),
    ],
)
def test_a_malformed_record_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"record number 1.*{message}"):
        PROTOCOL.questions([{**RECORD, **changes}])


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("<think>so</think>\\boxed{12\\sqrt{3}}", True),
        ("<think>so</think>\\boxed{\\sqrt{432}}", True),
        ("<think>12√3</think>\\boxed{12}", False),
        ("<think>12√3</think>", False),
    ],
)
def test_the_boxed_answer_is_compared_as_an_open_one(response: str, right: bool) -> None:
    (question,) = PROTOCOL.questions([RECORD])
    extraction = PROTOCOL.extract(question, response)
    assert PROTOCOL.grade([question], [extraction], "current", decided) == [right]
