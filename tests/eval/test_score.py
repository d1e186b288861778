"""Scores of recorded outputs: matching, counts, breakdowns, agreement; refusals name file and line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.digests import protocol_digest
from eval.protocols import load_protocol
from eval.recorded_outputs import OutputsError, Source, read_records
from eval.score import score_files

QUESTIONS = [
    {
        "sample_index": str(number),
        "problem_index": str(number),
        "problem_version": "Text Only",
        "question": "How large is it?\nChoices:\nA:40°\nB:60°" if number < 3 else "How large is it?",
        "image": "",
        "answer": "B" if number < 3 else "60°",
        "question_type": "multi-choice" if number < 3 else "free-form",
        "metadata": {"source": "Made", "subject": "Plane Geometry", "subfield": "Angle"},
        "query_cot": f"Question {number}: how large is it?",
    }
    for number in range(1, 5)
]
OUTPUTS = [
    {"sample_index": "4", "response": r"\boxed{30 + 30}", "true_false": True},
    {"sample_index": "1", "response": "The answer is B.", "true_false": True},
    {"sample_index": "2", "response": "I cannot see it.", "true_false": None},
    {"sample_index": "3", "response": r"\boxed{60^\circ}", "true_false": False},
]


def equal(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    return [gold == answer for gold, answer in pairs]


def lines(records: Sequence[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def scored(
    folder: Path,
    outputs: Sequence[Any],
    source: Source = "response",
    partial: bool = False,
    text: str = "",
    questions: Sequence[Any] = QUESTIONS,
) -> dict[str, Any]:
    (folder / "questions.jsonl").write_text(lines(questions), "utf-8")
    (folder / "outputs.jsonl").write_text(text or lines(outputs), "utf-8")
    return score_files(
        "mathverse", folder / "questions.jsonl", folder / "outputs.jsonl", source, None, partial, equal
    )


def test_counts_breakdowns_and_agreement(tmp_path: Path) -> None:
    score = scored(tmp_path, OUTPUTS)
    assert (score["n"], score["correct"], score["undecided"], score["accuracy"]) == (4, 2, 1, 0.5)
    assert score["extraction_failure_rate"] == 0.25
    assert score["truncation_rate"] is None
    assert score["agreement"] == {"n": 4, "recorded_correct": 2, "equal": 2, "rate": 0.5}
    assert score["breakdowns"]["question_type"] == {
        "free-form": {"n": 2, "correct": 1, "undecided": 1, "accuracy": 0.5},
        "multi-choice": {"n": 2, "correct": 1, "undecided": 0, "accuracy": 0.5},
    }
    assert json.loads(json.dumps(score)) == score


def test_without_recorded_verdicts_there_is_no_agreement(tmp_path: Path) -> None:
    outputs = [{name: output[name] for name in ("sample_index", "response")} for output in OUTPUTS]
    assert scored(tmp_path, outputs)["agreement"] is None


@pytest.mark.parametrize(
    ("field", "cut", "whole"), [("finish_reason", "length", "stop"), ("truncated", True, False)]
)
def test_the_truncation_rate(tmp_path: Path, field: str, cut: Any, whole: Any) -> None:
    outputs = [{**output, field: cut if number == 0 else whole} for number, output in enumerate(OUTPUTS)]
    assert scored(tmp_path, outputs)["truncation_rate"] == 0.25


def test_recorded_extractions_are_scored_as_they_are(tmp_path: Path) -> None:
    extractions = ["A", "B", "60°", None]
    outputs = [
        {"sample_index": str(number), "extraction": extraction, "response": r"\boxed{B}"}
        for number, extraction in enumerate(extractions, start=1)
    ]
    score = scored(tmp_path, outputs, "extraction")
    assert (score["correct"], score["undecided"], score["extraction_failure_rate"]) == (2, 0, 0.25)


def test_labels_of_the_outputs_count_before_those_of_the_questions(tmp_path: Path) -> None:
    outputs = [{**output, "metadata": {"subject": "Functions"}} for output in OUTPUTS]
    cells = scored(tmp_path, outputs)["breakdowns"]
    assert list(cells["subject"]) == ["Functions"]
    assert list(cells["subfield"]) == ["Angle"]


@pytest.mark.parametrize("form", ["gzip", "list", "results", "by id", "byte order mark"])
def test_the_forms_of_a_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / "outputs.any"
    path.write_bytes(
        {
            "gzip": gzip.compress(lines(OUTPUTS).encode()),
            "list": json.dumps(OUTPUTS).encode(),
            "results": json.dumps({"accuracy": 0.5, "results": OUTPUTS}).encode(),
            "by id": json.dumps({output["sample_index"]: output for output in OUTPUTS}).encode(),
            "byte order mark": b"\xef\xbb\xbf" + lines(OUTPUTS).encode(),
        }[form]
    )
    assert [dict(record.fields) for record in read_records(path)] == OUTPUTS


def test_missing_outputs_are_refused_or_counted(tmp_path: Path) -> None:
    with pytest.raises(
        OutputsError, match=r"1 of 4 questions have no output, the first with sample_index '3'"
    ):
        scored(tmp_path, OUTPUTS[:3])
    score = scored(tmp_path, OUTPUTS[:3], partial=True)
    assert (score["questions"], score["missing"], score["n"]) == (4, 1, 3)


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        (
            lines([*OUTPUTS, {"sample_index": "9", "response": ""}]),
            "No question has sample_index '9'",
            "line 5",
        ),
        (lines([*OUTPUTS, OUTPUTS[0]]), "second output for the question with sample_index '4'", "line 5"),
        (lines(OUTPUTS[:2]) + '{"sample_index": "2", "resp', "no JSON", "line 3"),
        (lines(OUTPUTS[:2]) + "[1]\n", "no object", "line 3"),
        (lines([{"sample_index": "1"}]), "no response", "line 1"),
        (lines([{"sample_index": "1", "response": ["a"]}]), "no text", "line 1"),
        (lines([{**OUTPUTS[0], "true_false": "yes"}]), "should be true, false or null", "line 1"),
        (lines([{"response": "A"}]), "do not say which questions", "line 1"),
        ("\n", "no records", "outputs.jsonl"),
        ("[" * 100_000, "no JSON", "line 1"),
    ],
)
def test_a_refusal_names_file_and_line(tmp_path: Path, text: str, what: str, where: str) -> None:
    with pytest.raises(OutputsError, match=what) as refused:
        scored(tmp_path, [], text=text)
    assert "outputs.jsonl" in refused.value.where
    assert refused.value.where.endswith(where)
    assert refused.value.way_out


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(lines(OUTPUTS).encode())[:40])
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, what in (
        (cut, "cannot be read"),
        (binary, "cannot be read"),
        (tmp_path / "none", "no such file"),
    ):
        with pytest.raises(OutputsError, match=what) as refused:
            read_records(path)
        assert refused.value.where == str(path)


def test_questions_of_another_benchmark_are_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(lines([{"pid": "1", "question": "?"}]), "utf-8")
    (tmp_path / "outputs.jsonl").write_text(lines([{"pid": "1", "response": "A"}]), "utf-8")
    with pytest.raises(OutputsError, match="problem_index"):
        score_files(
            "mathverse",
            tmp_path / "questions.jsonl",
            tmp_path / "outputs.jsonl",
            "response",
            None,
            False,
            equal,
        )


def test_an_unknown_rule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mathverse has no rule 'paper'; its rules: current"):
        score_files("mathverse", tmp_path / "q", tmp_path / "o", "response", "paper", False, equal)


def test_digests_tell_prompts_and_extractors_apart(tmp_path: Path) -> None:
    first = scored(tmp_path, OUTPUTS)["digests"]
    assert first == scored(tmp_path, OUTPUTS)["digests"]
    assert protocol_digest(load_protocol("mathverse")) == first["extractor"]
    assert protocol_digest(load_protocol("wemath")) != first["extractor"]
    other = [{**QUESTIONS[0], "query_cot": "Another prompt."}, *QUESTIONS[1:]]
    assert scored(tmp_path, OUTPUTS, questions=other)["digests"]["prompt"] != first["prompt"]


def test_outputs_without_a_response_are_wrong(tmp_path: Path) -> None:
    score = scored(tmp_path, [{**output, "response": None} for output in OUTPUTS])
    assert (score["correct"], score["undecided"], score["extraction_failure_rate"]) == (0, 0, 1.0)
