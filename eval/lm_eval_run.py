"""One decoding of a benchmark through lm-eval's Python API, and its log as rows of samples."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from eval.benchmark_settings import BenchmarkSettings, DecodingSettings
from eval.decoding import generation_kwargs
from eval.lm_eval_task import documents
from eval.models.journal import Journal, recorded
from eval.results import SAMPLES
from fastrl.rollouts import Question


def sample_decoding(
    model: Any,
    tasks: Path,
    settings: BenchmarkSettings,
    questions: Sequence[Question],
    name: str,
    decoding: DecodingSettings,
    seed: int,
    folder: Path | None,
    journal: Journal | None,
) -> pa.Table:
    """Every sample of every question, graded by the lm-eval task: rows of `SAMPLES` for the decoding `name`.

    model: an lm-eval model of `eval.models`. tasks: the folder of task files. folder: where the questions'
    references to images start, None for questions without. journal: keeps the model's finished batches.
    Raises RuntimeError unless lm-eval hands over each question's samples, all of them.
    """
    arguments = generation_kwargs(decoding, settings.max_gen_toks, settings.until, seed)
    with recorded(model, journal):
        log = _log(model, tasks, settings, documents(questions, folder), decoding, arguments)
    return _rows(name, questions, decoding.samples, log)


def _log(
    model: Any,
    tasks: Path,
    settings: BenchmarkSettings,
    asked: Any,
    decoding: DecodingSettings,
    arguments: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """lm-eval's log of samples, one dict per question.

    The task file gives prompt and grading; data and decoding are replaced by the benchmark's. lm-eval's
    `evaluate` is called, not `simple_evaluate`, which spawns processes to describe the machine, every time.
    The request cache stays off: its keys omit the sampling arguments.
    """
    from lm_eval.evaluator import evaluate
    from lm_eval.tasks import TaskManager

    dataset = {settings.split: asked}
    task = {
        "task": settings.task,
        "custom_dataset": lambda **_: dataset,
        "dataset_kwargs": {},
        "test_split": settings.split,
        "repeats": decoding.samples,
        "filter_list": [{"name": "all", "filter": [{"function": "take_first_k", "k": decoding.samples}]}],
        "generation_kwargs": dict(arguments),
    }
    if "images" in asked.column_names and any(asked["images"]):
        # Places of images, which our models open batch by batch; lm-eval would read all of them to log them.
        task["doc_to_image"] = _image_sources
    with _errors_alone():
        manager = TaskManager(include_path=str(tasks), include_defaults=False)
        loaded = manager.load([{"group": settings.name, "task": [task]}])
        report = evaluate(
            lm=model,
            task_dict=loaded,
            bootstrap_iters=0,
            log_samples=True,
            cache_requests=False,
            apply_chat_template=settings.chat_template,
        )
    log: list[dict[str, Any]] = report["samples"][settings.task]
    return log


def _image_sources(document: Mapping[str, Any]) -> list[str]:
    return list(document["images"])


def _rows(decoding: str, questions: Sequence[Question], n: int, log: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows in the order of the questions, n for each."""
    samples_of = {entry["doc"]["id"]: entry["samples"] for entry in log}
    rows = []
    for question in questions:
        samples = samples_of.get(question.id, [])
        if len(samples) != n:
            raise RuntimeError(
                f"lm-eval returned {len(samples)} samples of question {question.id!r} instead of {n}; "
                "the task must keep every repeat (filter take_first_k) and every document"
            )
        for index, sample in enumerate(samples):
            place = {"question_id": question.id, "family": question.family, "sample": index}
            rows.append({"decoding": decoding, **place, **sample})
    return pa.Table.from_pylist(rows, schema=SAMPLES)


@contextmanager
def _errors_alone() -> Iterator[None]:
    """lm-eval's log at errors alone: it warns of what is meant here, such as a data set from a function."""
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
