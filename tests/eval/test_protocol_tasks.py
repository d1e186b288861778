"""lm-eval tasks of the public benchmarks: data of our configs, images, verdicts, and stock lm-eval."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks import TaskManager
from official_folders import TEXT, VISUAL, benchmark, write_folder
from scripted_model import ScriptedModel

from eval.benchmark_settings import BenchmarkSettings
from eval.datasets import load_questions
from eval.digests import TASKS, extractor_digest
from eval.lm_eval_run import sample_decoding
from eval.lm_eval_task import Verdict, question_of
from eval.results import decoding_results

ROOT = Path(__file__).parents[2]
NAMES = (*VISUAL, *TEXT)


def load_task(name: str, root: Path, rows: int) -> Any:
    """The task as lm-eval's command line makes it with `--metadata`."""
    metadata: dict[str, Any] = {"root": str(root), "rows": rows}
    manager = TaskManager(include_path=str(TASKS), include_defaults=False, metadata=metadata)
    return manager.load([name])["tasks"][name]


@pytest.mark.parametrize("name", NAMES)
def test_a_task_alone_reads_the_data_set_of_our_config(name: str, tmp_path: Path) -> None:
    rows = write_folder(name, tmp_path)
    task, config = load_task(name, tmp_path, rows), benchmark(name)
    assert task.config.dataset_kwargs == {"splits": [config["split"]], "dataset": config["dataset"]}
    assert [question_of(document).id for document in task.eval_docs] == [
        question.id
        for question in load_questions(benchmark(name, tmp_path, rows)["dataset"], config["split"])
    ]
    assert task.config.generation_kwargs["until"] == [] and task.config.repeats == 1
    assert getattr(task, "MULTIMODAL", False) == (name in VISUAL)
    for document in task.eval_docs if name in VISUAL else ():
        (image,) = task.doc_to_image(document)
        assert image.size[1] == 50


def test_a_question_survives_the_way_through_lm_evals_documents(tmp_path: Path) -> None:
    rows = write_folder("mathvista", tmp_path)
    questions = load_questions(benchmark("mathvista", tmp_path, rows)["dataset"], "testmini")
    found = [question_of(document) for document in load_task("mathvista", tmp_path, rows).eval_docs]
    for before, after in zip(questions, found, strict=True):
        assert vars(after) == vars(before) | {"images": (str(tmp_path / vars(before)["images"][0]),)}


def test_sampled_answers_get_the_protocols_verdicts_and_official_breakdowns(tmp_path: Path) -> None:
    rows = write_folder("mathvista", tmp_path)
    config = benchmark("mathvista", tmp_path, rows, decodings={"t1": {"temperature": 1.0, "samples": 2}})
    settings = BenchmarkSettings.from_mapping(config | {"pass_k": [1, 2], "chat_template": False})
    questions = load_questions(config["dataset"], "testmini")
    script = {
        question.prompt: [f"The answer is {question.answer}.", "The answer is 99." if index else "Hm."]
        for index, question in enumerate(questions)
    }
    model = ScriptedModel(script)
    model.MULTIMODAL = True
    table = sample_decoding(
        model, TASKS, settings, questions, "t1", settings.decodings["t1"], 0, tmp_path, None
    )
    assert table["correct"].to_pylist() == [True, False] * 3
    results = decoding_results(table, "t1", settings, 0, questions)
    assert results["metrics"]["pass_at_2"] == 1.0 and results["metrics"]["accuracy"] == 0.5
    assert results["breakdown"]["skills"] == {
        "arithmetic reasoning": {"n": 3, "accuracy": 0.5},
        "statistical reasoning": {"n": 3, "accuracy": 0.5},
    }
    assert results["extraction_failure_rate"] == pytest.approx(1 / 6)
    assert results["undecided_rate"] == 0.0


def test_a_verdict_is_never_right_and_undecided() -> None:
    with pytest.raises(ValueError, match="not both"):
        Verdict("x", correct=True, formatted=None, undecided=True)


def test_the_digest_of_a_task_covers_its_protocol_and_the_grader() -> None:
    digests = {name: extractor_digest(name) for name in NAMES}
    assert digests["mathvision"] == digests["mathvision_testmini"]
    assert digests["mathverse"] == digests["mathverse_text_only"]
    assert len({digests[name] for name in ("aime24", "math500", "mathvista", "wemath", "mathverse")}) == 5


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None,
    reason="stock lm-eval reads the processor of Qwen2.5-VL with torchvision",
)
def test_lm_evals_command_line_runs_a_task_with_images(tmp_path: Path) -> None:
    from tiny_vision_policy import build_tiny_vision_policy

    policy = build_tiny_vision_policy(tmp_path / "policy")
    rows = write_folder("mathvision", tmp_path / "data", n=3)
    command = [sys.executable, "-m", "lm_eval", "--model", "hf-multimodal", "--apply_chat_template"]
    command += ["--model_args", f"pretrained={policy},convert_img_format=True", "--device", "cpu"]
    command += ["--include_path", str(TASKS), "--tasks", "mathvision", "--limit", "2"]
    command += ["--metadata", json.dumps({"root": str(tmp_path / "data"), "rows": rows})]
    command += ["--gen_kwargs", "max_gen_toks=8", "--output_path", str(tmp_path / "out"), "--log_samples"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    (report,) = (tmp_path / "out").glob("*/results_*.json")
    assert json.loads(report.read_text())["results"]["mathvision"]["samples,all"] == 2


@pytest.mark.slow
def test_lm_evals_command_line_runs_the_tasks(tmp_path: Path) -> None:
    from tiny_policy import build_tiny_policy

    policy = build_tiny_policy(tmp_path / "policy")
    write_folder("aime24", tmp_path / "data" / "aime24")
    write_folder("math500", tmp_path / "data" / "math500")
    command = [sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={policy}"]
    command += ["--include_path", str(TASKS), "--tasks", "aime24,math500", "--device", "cpu"]
    command += ["--metadata", json.dumps({"root": str(tmp_path / "data"), "rows": 3})]
    command += ["--gen_kwargs", "max_gen_toks=8", "--output_path", str(tmp_path / "out"), "--log_samples"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    (report,) = (tmp_path / "out").glob("*/results_*.json")
    results = json.loads(report.read_text())["results"]
    assert [results[name]["samples,all"] for name in ("aime24", "math500")] == [3, 3]
