"""We-Math: options, two extractions, and four-dimensional metrics against a slow oracle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import shared_data, shared_records

from eval.protocols.base import BenchmarkQuestion
from eval.protocols.wemath import WeMath
from eval.protocols.wemath_metrics import GroupCounts

WEMATH = WeMath()
CONCEPTS = [
    {"root0": "All", "root1": "Measurement", "root2": "Angles", "root3": "Using a Ruler", "root4": None},
    {"root0": "All", "root1": "Measurement", "root2": "Angles", "root3": "Using a Clock", "root4": None},
    {"root0": "All", "root1": "Solids", "root2": "Volume", "root3": "Of Boxes", "root4": "Of Cubes"},
]
LEAVES = ["Using a Ruler", "Using a Clock", "Of Cubes"]


def record(group: str, step: str, **fields: Any) -> dict[str, Any]:
    steps = group[0]
    return {
        "ID": group,
        "key": f"{steps}steps_{step}",
        "question": "How long is it?",
        "option": "A. 10 cm;B. 15 cm; C. 31.4 cm;D. 62.8 cm.; E. No correct answer",
        "answer": "B",
        "image_path": "2steps/image/1-1.png",
        "knowledge concept": LEAVES[0],
    } | fields


def questions_of(groups: Sequence[int]) -> list[BenchmarkQuestion]:
    """Groups of so many sub-steps, each concept in turn."""
    records = []
    for number, steps in enumerate(groups, start=1):
        name = f"{steps}steps_{number}"
        for step in range(1, steps + 1):
            concept = LEAVES[(number + step) % len(LEAVES)]
            records.append(record(name, str(step), **{"knowledge concept": concept}))
        records.append(record(name, "multi", **{"knowledge concept": ";".join(LEAVES[:steps])}))
    return WEMATH.questions(WEMATH.with_companion(records, CONCEPTS))


def test_the_prompt_holds_question_and_options_in_the_official_template() -> None:
    prompt = WEMATH.questions([record("2steps_1", "1")])[0].prompt
    assert prompt.startswith("<image>\nNow, we require you to solve a multiple-choice math question.")
    assert "\nQuestion: How long is it?\nOption: A. 10 cm;B. 15 cm;" in prompt
    assert prompt.endswith("<Thought process>: <<your thought process>> <Answer>: <<your option>>")


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("A. 1;B. 2; C. 3", {"A": "1", "B": "2", "C": "3"}),
        (
            "A. Yes, 5dm to the right;  ; B. No.  ; D. Neither",
            {"A": "Yes, 5dm to the right", "B": "No", "D": "Neither"},
        ),
        ("A. ①; ③;B. ②; ③; E. None", {"A": "①; ③", "B": "②; ③", "E": "None"}),
        ("A. ①;B．②;C. ③", {"A": "①", "B": "②", "C": "③"}),
    ],
)
def test_options_are_split_at_their_letters(option: str, options: dict[str, str]) -> None:
    asked = WEMATH.questions([record("2steps_1", "1", option=option, answer="A")])[0]
    assert asked.details["options"] == options


@pytest.mark.parametrize(
    ("response", "own", "official"),
    [
        ("<Thought process>: <<3 times 5.>> <Answer>: <<B>>", "B", "B"),
        ("Answer: B. 15 cm", "B", "B"),
        ("The answer is B.", "B", None),
        (r"\boxed{B}", "B", None),
        ("So it is 15 cm.", "B", None),
        ("I cannot see the image.", None, None),
        ("", None, None),
    ],
)
def test_own_extraction_reads_more_forms_than_the_official_one(
    response: str, own: str | None, official: str | None
) -> None:
    asked = WEMATH.questions([record("2steps_1", "1")])[0]
    assert WEMATH.extract(asked, response) == own
    assert WEMATH.extract_officially(asked, response) == official


@pytest.mark.parametrize(
    "fields", [{"key": "4steps_1"}, {"answer": "Z"}, {"option": ""}, {"image_path": None}]
)
def test_a_malformed_record_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="We-Math record"):
        WEMATH.questions([record("2steps_1", "1") | fields])


def test_the_published_row_of_gpt_4o() -> None:
    strict = GroupCounts(ik=164, ig=80, cm=185, rm=96).metrics("strict")
    loose = GroupCounts(ik=164, ig=80, cm=278, rm=3).metrics("loose")
    assert round(100 * strict["score_strict"], 2) == 42.86
    assert round(100 * loose["score_loose"], 2) == 60.57
    assert round(100 * strict["rm_rate_strict"], 2) == 34.16
    assert round(100 * loose["rm_rate_loose"], 2) == 1.07


def oracle(groups: Sequence[int], correct: Sequence[bool]) -> dict[str, float]:
    """Each group on its own, by the definitions, in plain loops."""
    rest = list(correct)
    found = {"ik": 0, "ig": 0, "cm_strict": 0, "rm_strict": 0, "cm_loose": 0, "rm_loose": 0}
    for steps in groups:
        sub_steps, composite, rest = rest[:steps], rest[steps], rest[steps + 1 :]
        if not composite and not all(sub_steps):
            found["ik"] += 1
        if not composite and all(sub_steps):
            found["ig"] += 1
        if composite and all(sub_steps):
            found["cm_strict"] += 1
        if composite and not all(sub_steps):
            found["rm_strict"] += 1
        if composite and any(sub_steps):
            found["cm_loose"] += 1
        if composite and not any(sub_steps):
            found["rm_loose"] += 1
    scores: dict[str, float] = dict(found)
    for name in ("strict", "loose"):
        lost = 0.5 * found["ig"] + found[f"rm_{name}"] + found["ik"]
        scores[f"score_{name}"] = (len(groups) - lost) / len(groups)
    return scores


@given(
    st.lists(st.sampled_from([2, 3]), min_size=1, max_size=8).flatmap(
        lambda groups: st.tuples(
            st.just(groups),
            st.lists(st.booleans(), min_size=sum(groups) + len(groups), max_size=sum(groups) + len(groups)),
        )
    )
)
def test_metrics_equal_a_slow_oracle(answers: tuple[list[int], list[bool]]) -> None:
    groups, correct = answers
    metrics = WEMATH.metrics(questions_of(groups), correct)
    assert metrics["ik"] + metrics["ig"] + metrics["cm_strict"] + metrics["rm_strict"] == len(groups)
    assert {name: metrics[name] for name in oracle(groups, correct)} == pytest.approx(oracle(groups, correct))


def test_step_accuracies_and_domains_by_hand() -> None:
    questions = questions_of([2, 3])
    concepts = [question.details["concept"] for question in questions if not question.details["composite"]]
    assert concepts == ["Of Cubes", "Using a Ruler", "Using a Ruler", "Using a Clock", "Of Cubes"]
    metrics = WEMATH.metrics(questions, [True, False, True, True, True, False, False])
    assert (metrics["s1"], metrics["s2"], metrics["s3"]) == (3 / 5, 1.0, 0.0)
    assert metrics["domain Measurement: Angles"] == (1 / 2 + 1) / 2
    assert metrics["domain Solids: Volume"] == 1 / 2


def test_an_incomplete_group_is_left_out_of_the_four_dimensions() -> None:
    questions = questions_of([2, 2])[:-1]
    assert WEMATH.metrics(questions, [True] * len(questions))["groups"] == 1


def test_the_official_questions_are_read() -> None:
    concepts = json.loads((shared_data() / "wemath/knowledge_structure_nodes.json").read_text("utf-8"))
    records = shared_records("wemath/testmini.jsonl.gz")
    questions = WEMATH.questions(WEMATH.with_companion(records, concepts))
    assert len({question.id for question in questions}) == 1740
    metrics = WEMATH.metrics(questions, [True] * 1740)
    assert (metrics["groups"], metrics["score_strict"], metrics["s1"]) == (525, 1.0, 1.0)
    assert sum(name.startswith("domain ") for name in metrics) == 12
    answered = [WEMATH.extract(question, f"The answer is {question.answer}.") for question in questions]
    assert answered == [question.answer for question in questions]
    assert Path(questions[0].images[0]).suffix == ".png"
