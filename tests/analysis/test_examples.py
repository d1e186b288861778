"""The report's examples: held-out figures with the answers before and after training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.examples import Answer, Examples, examples
from analysis.figures.examples import FIGURE
from analysis.figures.spec import render
from analysis.records import RunRecord
from analysis.study import Arm, Clock, Study
from eval.datasets.laptop_figures.png import grey_png
from experiments.plan import Plan, ReportSettings
from experiments.run_directory import RunDirectory

BENCHMARK = "laptop_figures"
IMAGE = grey_png(2, 2, bytes([0, 255, 255, 0]))


def samples(path: Path, answers: dict[str, tuple[str | None, bool]]) -> None:
    rows = [
        {"decoding": decoding, "question_id": name, "extracted": text, "correct": right}
        for name, (text, right) in answers.items()
        for decoding in ("t1", "greedy")
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two methods and three questions, two of one family, one of which changes."""
    arms = tuple(
        Arm(method, method.upper(), method, "m", "d", None, ("main",), {0: f"{method}-s0"})
        for method in ("grpo", "fastrl")
    )
    start = tmp_path / "models/policy-1.start" / BENCHMARK
    samples(start / "samples.parquet", {"a": ("1", False), "b": ("2", False), "c": (None, False)})
    questions = [
        {"question_id": name, "prompt": "<image>Find it.", "answer": "7", "family": family, "images": [IMAGE]}
        for name, family in (("a", "one"), ("b", "one"), ("c", "two"))
    ]
    pq.write_table(pa.Table.from_pylist(questions), start / "questions.parquet")
    for arm, text in zip(arms, ("7", "8"), strict=True):
        run = RunDirectory(tmp_path / "runs" / arm.runs[0])
        samples(run.samples_path(BENCHMARK), {"a": ("1", False), "b": (text, text == "7"), "c": ("7", True)})
        run.provenance_path.write_text(json.dumps({"policy": "policy-1"}))
    return _study(tmp_path, arms)


def _study(root: Path, arms: tuple[Arm, ...]) -> Study:
    report = ReportSettings((), ("examples",), BENCHMARK, (), 0.5)
    nothing = pd.DataFrame()
    return Study(
        root=root,
        plan=Plan("laptop", "A study", "grpo", "cpu", None, 0.0, (), report),
        clock=Clock("cpu_s", "CPU-s"),
        arms=arms,
        records={run: _record(run) for arm in arms for run in arm.runs.values()},
        steps=nothing,
        validations=nothing,
        evaluations=nothing,
        set_aside=(),
        unfinished=(),
    )


def _record(run: str) -> RunRecord:
    results = {BENCHMARK: {"decodings": {"greedy": {}}}}
    return RunRecord(run, {}, {}, steps=None, results=results, hardware="", commit=None, dirty=False)


def test_each_family_shows_the_question_whose_answers_change_most(study: Study) -> None:
    found = examples(study, 5)
    assert isinstance(found, Examples)
    assert found.columns == ("before training", "GRPO", "FASTRL")
    assert [(row.question, row.gold, row.image) for row in found.rows] == [("Find it.", "7", IMAGE)] * 2
    assert found.rows[0].answers == (Answer("2", False), Answer("7", True), Answer("8", False))
    assert found.rows[1].answers == (Answer(None, False), Answer("7", True), Answer("7", True))


def test_no_more_are_shown_than_asked_for(study: Study) -> None:
    found = examples(study, 1)
    assert isinstance(found, Examples) and len(found.rows) == 1


def test_the_figure_is_drawn_the_same_every_time(study: Study) -> None:
    assert FIGURE.lacks(study) == ""
    assert "one a family" in FIGURE.caption(study)
    first, second = (render(FIGURE, study, ("png", "svg")) for _ in range(2))
    assert first == second
    assert first["png"].startswith(b"\x89PNG")
    assert b"<image" in first["svg"]  # the question's image lies in it


def test_without_a_record_of_the_starting_policy_the_report_says_so(study: Study) -> None:
    (study.root / "models/policy-1.start" / BENCHMARK / "questions.parquet").unlink()
    assert FIGURE.lacks(study) == "no record of the starting policy on questions with images"


def test_a_study_without_finished_evaluations_says_so(study: Study) -> None:
    assert FIGURE.lacks(replace(study, records={})) == "no main method with a finished evaluation"


def test_damaged_samples_are_named(study: Study) -> None:
    path = RunDirectory(study.root / "runs/fastrl-s0").samples_path(BENCHMARK)
    path.write_bytes(b"no parquet")
    assert "fastrl-s0/eval/laptop_figures/samples.parquet" in FIGURE.lacks(study)
