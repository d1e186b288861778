"""`fastrl score` as a user meets it: both formats, and errors on one screen with a way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import main

CONCEPT = "Using a Ruler"
RECORDS = [
    {
        "ID": "2steps_1",
        "key": f"2steps_{step}",
        "question": "How long is it?",
        "option": "A. 10 cm;B. 15 cm; C. No correct answer",
        "answer": "B",
        "image_path": "1.png",
        "knowledge concept": CONCEPT,
    }
    for step in ("1", "2", "multi")
]
RESPONSES = ("<Answer>: <<B>>", "The answer is B.", "I see nothing.")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags that name the two files."""
    questions, outputs = tmp_path / "testmini.jsonl", tmp_path / "model.jsonl"
    questions.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), "utf-8")
    answered = [
        {"ID": record["ID"], "key": record["key"], "response": response}
        for record, response in zip(RECORDS, RESPONSES, strict=True)
    ]
    outputs.write_text("".join(json.dumps(output) + "\n" for output in answered), "utf-8")
    return ["--questions", str(questions), "--outputs", str(outputs)]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["score", *words, "--format", "json"]) == 0
    score: dict[str, Any] = json.loads(capsys.readouterr().out)
    return score


def test_json_holds_the_whole_score(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    score = printed(capsys, "wemath", *files)
    assert (score["n"], score["correct"], score["rule"]) == (3, 2, "current")
    assert score["metrics"]["ig"] == 1
    assert score["official_extraction"]["correct"] == 1
    assert {len(digest) for digest in score["digests"].values()} == {64}
    assert not any(name.startswith("domain") for name in score["metrics"])


def test_the_concepts_beside_the_questions_give_domain_scores(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [{"root1": "Measurement", "root2": "Length", "root3": CONCEPT}]
    (tmp_path / "knowledge_structure_nodes.json").write_text(json.dumps(nodes), "utf-8")
    assert printed(capsys, "wemath", *files)["metrics"]["domain Measurement: Length"] == 1.0
    (tmp_path / "knowledge_structure_nodes.json").write_text("{", "utf-8")
    assert main(["score", "wemath", *files]) == 2
    assert "knowledge_structure_nodes.json" in capsys.readouterr().err


def test_the_table_names_what_it_counts(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "wemath", *files]) == 0
    table = capsys.readouterr().out
    assert "wemath, from response, rule current" in table
    assert "truncated: unknown" in table
    assert "by the official extraction:" in table
    assert "33.33 %" in table
    assert "extractor sha256 " in table


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["wemaths"], 'did you mean "wemath"?'),
        (["wemath", "--rule", "paper"], "its rules: current"),
        (["wemath", "--from", "extraction"], "line 1"),
        (["wemath", "--outputs", "nowhere.jsonl"], "nowhere.jsonl"),
        (["mathvista"], "MathVista record number 1"),
    ],
)
def test_wrong_usage_ends_with_a_way_out(
    words: list[str], named: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", words[0], *files, *words[1:]]) == 2
    error = capsys.readouterr().err
    assert named in error
    assert "way out" in error
    assert "Traceback" not in error


def test_partial_outputs_are_scored_when_asked(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "model.jsonl"
    outputs.write_text(outputs.read_text("utf-8").split("\n")[0] + "\n", "utf-8")
    assert main(["score", "wemath", *files]) == 2
    assert "--partial" in capsys.readouterr().err
    assert printed(capsys, "wemath", *files, "--partial")["missing"] == 2


OPEN = {
    "aime24": (
        [{"id": number, "problem": f"Problem {number}?", "answer": "073"} for number in range(4)],
        "id",
        (r"so \boxed{73}", "The answer is 73.", r"\boxed{0073} or \boxed{74}", "no idea"),
        {},
    ),
    "math500": (
        [
            {
                "problem": f"Problem {number}?",
                "solution": r"\boxed{\frac{1}{2}}",
                "answer": r"\frac{1}{2}",
                "subject": "Algebra" if number % 2 else "Geometry",
                "level": 3,
                "unique_id": f"test/{number}.json",
            }
            for number in range(4)
        ],
        "unique_id",
        (r"\boxed{0.5}", r"The answer is $\frac12$.", r"\boxed{2}", "no idea"),
        {"subject": {"Algebra": 1, "Geometry": 1}, "level": {"3": 2}},
    ),
    "geometry3k": (
        [
            {"id": number, "images": [f"{number}.png"], "problem": "<image>Find x.", "answer": r"2 \sqrt {3}"}
            for number in range(4)
        ],
        "id",
        (
            r"<think>so</think> \boxed{2\sqrt{3}}",
            r"<answer>\sqrt{12}</answer>",
            r"\boxed{3\sqrt{2}}",
            "no idea",
        ),
        {},
    ),
}
"""Records, the field that names them, responses (two right, one wrong, one without an answer), breakdowns."""


@pytest.mark.parametrize("name", OPEN)
def test_open_answers_are_scored(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, identity, responses, breakdowns = OPEN[name]
    outputs = [
        {identity: record[identity], "response": response, "truncated": response == "no idea"}
        for record, response in zip(found, responses, strict=True)
    ]
    for file, content in (("questions.jsonl", found), ("outputs.jsonl", outputs[::-1])):
        (tmp_path / file).write_text("".join(json.dumps(each) + "\n" for each in content), "utf-8")
    files = ["--questions", str(tmp_path / "questions.jsonl"), "--outputs", str(tmp_path / "outputs.jsonl")]
    score = printed(capsys, name, *files)
    assert (score["n"], score["correct"], score["undecided"], score["accuracy"]) == (4, 2, 0, 0.5)
    assert (score["extraction_failure_rate"], score["truncation_rate"]) == (0.25, 0.25)
    assert score["agreement"] is None
    assert {
        label: {value: cell["correct"] for value, cell in cells.items()}
        for label, cells in score["breakdowns"].items()
    } == breakdowns
