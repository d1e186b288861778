"""The lm-eval tasks of the laptop benchmarks: the right questions, all samples, the verdicts of training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laptop_benchmark import composed, small_benchmark
from lm_eval.evaluator import evaluate as lm_eval_evaluate
from lm_eval.tasks import TaskManager
from scripted_model import ScriptedModel

from eval.benchmark_settings import BenchmarkSettings, DecodingSettings
from eval.datasets import dataset_digest, load_questions
from eval.decoding import generation_kwargs
from eval.digests import TASKS, extractor_digest
from eval.lm_eval_run import sample_decoding
from eval.lm_eval_task import sample_metrics
from eval.pass_at_k import pass_at_k
from eval.results import decoding_results
from eval.rewards import build_reward
from eval.tasks.laptop_geometry.task import grade
from fastrl.rollouts import Question

ROOT = Path(__file__).parents[2]
BENCHMARKS = ("laptop_geometry", "laptop_geometry_ood")


def load_task(name: str, **overrides: Any) -> Any:
    """An lm-eval task object as lm-eval's command line would make it, but for the overrides."""
    manager = TaskManager(include_path=str(TASKS), include_defaults=False)
    return manager.load([{"group": "all", "task": [{"task": name, **overrides}]}])["tasks"][name]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_lm_eval_alone_asks_the_questions_of_our_config(name: str) -> None:
    benchmark = composed()[name]
    documents = load_task(name).eval_docs
    questions = [Question(**document) for document in documents]
    assert dataset_digest(questions) == dataset_digest(
        load_questions(benchmark["dataset"], benchmark["split"])
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_lm_eval_alone_decodes_like_our_decoding_at_temperature_1(name: str) -> None:
    settings = BenchmarkSettings.from_mapping(composed()[name])
    config = load_task(name).config
    arguments = generation_kwargs(settings.decodings["t1"], settings.max_gen_toks, settings.until, seed=0)
    del arguments["seed"]
    assert config.generation_kwargs == arguments
    assert config.repeats == settings.decodings["t1"].samples == config.filter_list[0]["filter"][0]["k"]


def test_the_two_benchmarks_share_no_question_and_no_family() -> None:
    first, second = (load_questions(composed()[n]["dataset"], composed()[n]["split"]) for n in BENCHMARKS)
    assert not {question.prompt for question in first} & {question.prompt for question in second}
    assert not {question.family for question in first} & {question.family for question in second}


def scripted_samples(
    n_right: list[int], samples: int
) -> tuple[Any, BenchmarkSettings, ScriptedModel, list[Question]]:
    """A decoding of questions whose q-th gets n_right[q] right responses, the rest wrong or without a box."""
    decoding = {"t1": {"temperature": 1.0, "samples": samples}}
    benchmark = small_benchmark(decodings=decoding, pass_k=list(range(1, samples + 1)))
    benchmark["dataset"]["splits"]["sizes"]["validation"] = len(n_right)
    questions = load_questions(benchmark["dataset"], "validation")
    settings = BenchmarkSettings.from_mapping(benchmark)
    wrong = ["<think>no</think> \\boxed{-5}", "no box 7\n\nat all"]
    script = {
        question.prompt: [f"<think>a\n\nb</think> \\boxed{{{question.answer}}}"] * right
        + [wrong[i % 2] for i in range(samples - right)]
        for question, right in zip(questions, n_right, strict=True)
    }
    model = ScriptedModel(script)
    way = DecodingSettings(1.0, samples)
    table = sample_decoding(model, TASKS, settings, questions, "t1", way, seed=0, folder=None, journal=None)
    return table, settings, model, questions


def test_every_sample_reaches_the_metrics_not_just_the_first() -> None:
    n_right = [0, 1, 3, 8, 5]
    table, settings, model, questions = scripted_samples(n_right, 8)
    assert model.asked == [question.prompt for question in questions for _ in range(8)]
    assert table.num_rows == 40
    results = decoding_results(table, "t1", settings, 0, questions)
    for k in range(1, 9):
        expected = pass_at_k(np.array(n_right), 8, k).mean()
        assert results["metrics"][f"pass_at_{k}"] == pytest.approx(expected)
    assert results["metrics"]["accuracy"] == results["metrics"]["avg_at_8"] == pytest.approx(17 / 40)
    # 0, 1 of 8 lose to "-5"; 3 of 8 tie with "-5" (3 votes of it); 5 and 8 win.
    assert results["metrics"]["maj_at_8"] == pytest.approx((0 + 0 + 0.5 + 1 + 1) / 5)
    assert results["extraction_failure_rate"] == pytest.approx((4 + 3 + 2 + 0 + 1) / 40)
    assert results["format_rate"] == pytest.approx(1 - results["extraction_failure_rate"])
    assert results["truncation_rate"] is None and results["mean_tokens"] is None
    by_family = results["breakdown"]["family"]
    assert sum(entry["n"] for entry in by_family.values()) == 5


def test_every_decoding_makes_its_own_requests_and_caches_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # lm-eval's request cache would give the second decoding the first one's temperature.
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path))
    benchmark = small_benchmark(pass_k=[1, 2])
    settings = BenchmarkSettings.from_mapping(benchmark)
    questions = load_questions(benchmark["dataset"], "validation")
    model = ScriptedModel({question.prompt: ["a\n\nb", "c"] for question in questions})
    for temperature in (1.0, 0.6):
        way = DecodingSettings(temperature, 2)
        sample_decoding(model, TASKS, settings, questions, "t", way, seed=0, folder=None, journal=None)
    n = 2 * len(questions)
    assert [arguments["temperature"] for arguments in model.arguments] == [1.0] * n + [0.6] * n
    assert {tuple(arguments["until"]) for arguments in model.arguments} == {tuple(settings.until)}
    assert list(tmp_path.iterdir()) == []


def test_responses_with_blank_lines_arrive_whole() -> None:
    table, *_ = scripted_samples([1], 2)
    right, wrong = table["response"].to_pylist()
    assert right.startswith("<think>a\n\nb</think>") and wrong == "<think>no</think> \\boxed{-5}"


def test_lm_evals_own_aggregation_agrees_with_ours() -> None:
    n_right = [0, 1, 3, 8, 5]
    table, settings, model, questions = scripted_samples(n_right, 8)
    ours = decoding_results(table, "t1", settings, 0, questions)["metrics"]
    dataset = {"splits": ["validation"], "dataset": small_benchmark()["dataset"]}
    dataset["dataset"]["splits"]["sizes"]["validation"] = 5
    task = load_task("laptop_geometry", dataset_kwargs=dataset)
    report = lm_eval_evaluate(lm=model, task_dict={"tasks": {"laptop_geometry": task}}, bootstrap_iters=0)
    theirs = report["results"]["laptop_geometry"]
    assert theirs["samples,all"] == 40
    for metric in ("accuracy", "pass_at_2", "pass_at_4", "pass_at_8"):
        assert theirs[f"{metric},all"] == pytest.approx(ours[metric])


def test_lm_evals_default_filter_which_drops_samples_is_refused() -> None:
    task = load_task("laptop_geometry", filter_list=None)
    script = {document["prompt"]: ["x"] * 8 for document in task.eval_docs}
    with pytest.raises(ValueError, match="take_first_k"):
        lm_eval_evaluate(
            lm=ScriptedModel(script), task_dict={"tasks": {"laptop_geometry": task}}, bootstrap_iters=0
        )


pieces = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "\\boxed{",
            "}",
            "{",
            "\\",
            "45",
            "045",
            "45.0",
            "-",
            " ",
            "\n",
            "°",
            "$",
            "x",
        ]
    ),
    max_size=12,
).map("".join)


@given(st.one_of(pieces, st.text(max_size=40)))
def test_the_verdict_of_the_benchmark_is_the_reward_of_training(response: str) -> None:
    question = Question("q", "Q", "45")
    (reward,) = build_reward(composed()["laptop_geometry"]["dataset"]["reward"])([question], [response])
    verdict = grade(question, response)
    assert (float(verdict.correct), float(bool(verdict.formatted))) == (reward.accuracy, reward.format)
    assert verdict.extracted is not None or not verdict.correct


def test_a_document_without_all_its_fields_is_not_graded() -> None:
    with pytest.raises(KeyError, match="answer"):
        sample_metrics({"id": "q", "prompt": "Q"}, [["x"]], grade)


def test_the_grader_of_both_benchmarks_is_the_same_code_and_an_unknown_task_is_named() -> None:
    assert extractor_digest("laptop_geometry") == extractor_digest("laptop_geometry_ood")
    with pytest.raises(ValueError, match=r"'laptop_geometri'.*laptop_geometry, laptop_geometry_ood"):
        extractor_digest("laptop_geometri")


@pytest.mark.slow
def test_lm_evals_command_line_runs_both_tasks(tmp_path: Path) -> None:
    from tiny_policy import build_tiny_policy

    policy = build_tiny_policy(tmp_path / "policy")
    tasks = "laptop_geometry,laptop_geometry_ood"
    command = [sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={policy}"]
    command += ["--include_path", str(TASKS), "--tasks", tasks, "--device", "cpu", "--batch_size", "64"]
    command += ["--limit", "4", "--output_path", str(tmp_path / "out"), "--log_samples"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    (report,) = (tmp_path / "out").glob("*/results_*.json")
    results = json.loads(report.read_text())["results"]
    assert {name: results[name]["samples,all"] for name in BENCHMARKS} == dict.fromkeys(BENCHMARKS, 32)
