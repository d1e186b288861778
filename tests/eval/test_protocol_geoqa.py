"""GeoQA8K-R1V: the published verdicts of a recorded log, and the rule by the stated answer."""

from __future__ import annotations

import gzip
import json

import pytest
from shared_data import shared_data

from eval.grading.open_answers import SHARED_POOL, OpenAnswerGrader
from eval.protocols import load_protocol

PROTOCOL = load_protocol("geoqa8k_r1v")
RECORD = {"image_path": "images/test/0.png", "question": "What is angle CED?", "ground_truth": "140°"}


def test_a_record_becomes_a_question_with_its_image() -> None:
    (question,) = PROTOCOL.questions([RECORD])
    assert question.images == ("images/test/0.png",)
    assert question.prompt.startswith("<image>What is angle CED?\n")
    assert question.answer == "140°"


def test_ids_do_not_depend_on_the_order_of_the_records() -> None:
    other = {**RECORD, "image_path": "images/test/1.png"}
    first = [question.id for question in PROTOCOL.questions([RECORD, other])]
    assert [question.id for question in PROTOCOL.questions([other, RECORD])] == first[::-1]
    assert len(set(first)) == 2


def test_a_missing_field_is_named_with_its_record() -> None:
    with pytest.raises(ValueError, match=r"record number 2.*'ground_truth'"):
        PROTOCOL.questions([RECORD, {**RECORD, "ground_truth": ""}])


@pytest.mark.parametrize(
    ("response", "stated"),
    [
        ("<think>first 20, so</think><answer>140</answer>", True),
        ("<think>40°</think> \\boxed{140^\\circ}", True),
        ("Therefore, the answer is 140.", True),
        ("<answer>40</answer>", False),
        ("I cannot tell. The angles 140 and 20 are given.", False),
        ("", False),
    ],
)
def test_the_stated_rule_reads_the_stated_answer_alone(response: str, stated: bool) -> None:
    question = PROTOCOL.questions([RECORD])[0]
    extraction = PROTOCOL.extract(question, response)
    with OpenAnswerGrader(SHARED_POOL) as grader:
        assert PROTOCOL.grade([question], [extraction], "stated", grader) == [stated]


@pytest.mark.slow
def test_all_published_verdicts_of_the_log_are_met() -> None:
    path = shared_data() / "geoqa" / "geoqa_test_qwen2vl_7b_instruct_legacy.json.gz"
    results = json.loads(gzip.decompress(path.read_bytes()))["results"]
    questions = PROTOCOL.questions([result["question"] for result in results])
    extractions = [
        PROTOCOL.extract(question, result["model_output"])
        for question, result in zip(questions, results, strict=True)
    ]

    def unused(pairs: object) -> list[bool]:
        raise AssertionError("the published rule is math-verify's alone")

    verdicts = PROTOCOL.grade(questions, extractions, PROTOCOL.rules[0], unused)
    assert verdicts == [result["is_correct"] for result in results]
    assert sum(map(bool, verdicts)) == 231
