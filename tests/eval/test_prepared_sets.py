"""Prepared sets in use: questions of the embedded engine, benchmarks read from them, and the same ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hub_folders import (
    diagram_settings,
    geometry3k_folder,
    geoqa_folder,
    math_parquet_folder,
    math_records,
    math_settings,
)
from official_folders import benchmark

from eval.datasets import load_questions
from eval.datasets.prepared import split_file
from eval.datasets.records import DataError
from eval.preparation.prepare import prepare
from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkQuestion
from eval.rewards import build_reward
from experiments.compose import compose_cell
from experiments.identity import run_id

POLICY = ["model=hub", "model.path=owner/policy"]


@pytest.fixture(scope="module")
def math_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("math")
    hub = math_parquet_folder(folder / "hub", math_records())
    prepare(math_settings("released", 10, 2), hub, folder / "data" / "math")
    return folder


def dataset(name: str, root: Path) -> dict[str, Any]:
    config: dict[str, Any] = compose_cell([*POLICY, f"dataset={name}", f"paths.root={root}"])["dataset"]
    return config


def test_training_reads_the_set_where_preparing_puts_it(math_set: Path) -> None:
    config = dataset("math", math_set)
    questions = load_questions(config, "train")
    rows = pq.read_table(math_set / "data/math/train.parquet").to_pylist()
    assert [question.id for question in questions] == [row["question_id"] for row in rows]
    assert questions[0].prompt == f"{rows[0]['problem']}\n{config['instruction']}"
    reward = build_reward(config["reward"])
    best = [f"<think>so</think> \\boxed{{{question.answer}}}" for question in questions]
    assert {one.total for one in reward(questions, best)} == {1.5}


def test_where_the_data_lie_is_not_part_of_a_runs_identity(math_set: Path, tmp_path: Path) -> None:
    here, there = (
        compose_cell([*POLICY, "dataset=math", f"paths.root={root}"]) for root in (math_set, tmp_path)
    )
    assert here["dataset"]["root"] != there["dataset"]["root"]
    assert run_id(here) == run_id(there)


def test_a_set_that_is_not_prepared_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train.parquet; run fastrl data prepare math"):
        load_questions(dataset("math", tmp_path), "train")


def test_a_prepared_sets_images_are_opened_when_they_are_needed(tmp_path: Path) -> None:
    prepare(
        diagram_settings("geometry3k", 5, 3),
        geometry3k_folder(tmp_path / "hub"),
        tmp_path / "data/geometry3k",
    )
    config = dataset("geometry3k", tmp_path)
    assert split_file(config, "train") == tmp_path / "data/geometry3k/train.parquet"
    questions = load_questions(config, "train")
    assert len(questions) == 5
    for question in questions:
        assert question.prompt.count("<image>") == len(question.images) == 1
        assert question.prompt.endswith(f"\n{config['instruction']}")
        assert min(question.images[0].size) > 0


def test_the_math_benchmark_reads_the_split_that_preparing_holds_back(math_set: Path) -> None:
    config = benchmark("math", split="released")
    config["dataset"]["root"] = str(math_set / "data")
    config["dataset"]["splits"]["released"]["rows"] = 2
    questions = load_questions(config["dataset"], "released")
    rows = pq.read_table(math_set / "data/math/test.parquet").to_pylist()
    assert [(question.id, question.answer) for question in questions] == [
        (row["question_id"], row["answer"]) for row in rows
    ]
    for question, row in zip(questions, rows, strict=True):
        assert isinstance(question, BenchmarkQuestion)
        assert question.labels == {"subject": (row["family"],)}


def test_a_problem_of_math_has_the_same_id_in_training_and_in_its_benchmark(math_set: Path) -> None:
    records = [record for half in math_records().values() for record in half]
    official = {question.id for question in load_protocol("math").questions(records)}
    prepared = {
        row["question_id"]
        for split in ("train", "test")
        for row in pq.read_table(math_set / f"data/math/{split}.parquet").to_pylist()
    }
    assert prepared == official


@pytest.mark.parametrize(("name", "make"), [("geometry3k", geometry3k_folder), ("geoqa8k_r1v", geoqa_folder)])
def test_a_prepared_set_with_images_is_read_as_its_benchmark(name: str, make: Any, tmp_path: Path) -> None:
    sizes = {"geometry3k": (5, 3), "geoqa8k_r1v": (4, 2)}[name]
    prepare(diagram_settings(name, *sizes), make(tmp_path / "hub"), tmp_path / "out")
    questions = load_questions(benchmark(name, tmp_path / "out", sizes[1])["dataset"], "test")
    rows = pq.read_table(tmp_path / "out/test.parquet").to_pylist()
    assert [question.id for question in questions] == [row["question_id"] for row in rows]
    for question in questions:
        assert isinstance(question, BenchmarkQuestion)
        assert question.prompt.count("<image>") == len(question.images) == 1
