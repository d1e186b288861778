"""What a starting policy answers before any training, recorded once per policy and benchmark.

Reports set it beside what trained policies answer. It is kept of policies that are built here, on the
benchmark that is called as the training set, when its questions have images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.datasets import load_questions
from eval.evaluate import evaluate
from experiments.atomic_files import draft_path, remove_old_drafts
from experiments.locks import LockHeld, LockLost, acquire
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext
from fastrl.rollouts import Question

_SEED = 0


def record_start(run: RunDirectory, config: Mapping[str, Any], benchmark: str, context: StageContext) -> None:
    """Evaluate a run's starting policy, unless that is done or another process is at it.

    Beside `results.json` and `samples.parquet` the questions are kept, with their images, as
    `questions.parquet`. Raises what `eval.evaluate.evaluate` does.
    """
    if config["model"]["kind"] != "built" or benchmark != config["dataset"]["name"]:
        return
    settings = config["benchmarks"][benchmark]
    questions = load_questions(settings["dataset"], settings["split"])
    folder = run.start_path(benchmark)
    if folder is None or not any(question.images for question in questions):
        return
    policy = folder.parent.with_suffix("")
    if not policy.is_dir():
        return
    try:
        with acquire(folder.with_name(f"{benchmark}.lock")) as lock:
            # Of one that was killed; nobody else writes there while this one holds the lock.
            remove_old_drafts(folder, older_than=0.0)

            def stop_requested() -> bool:
                # Processes on other hosts take over what is not touched for a while.
                lock.touch()
                return context.stop_requested()

            evaluate(
                checkpoint=policy,
                benchmark=settings,
                output=folder,
                seed=_SEED,
                stop_requested=stop_requested,
                announce=lambda line: context.announce(f"before training: {line}"),
            )
            _write_questions(folder / "questions.parquet", questions)
    except (LockHeld, LockLost):
        return


def _write_questions(path: Path, questions: Sequence[Question]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "question_id": question.id,
            "prompt": question.prompt,
            "answer": question.answer,
            "family": question.family,
            "images": [image.png() for image in question.images],
        }
        for question in questions
    ]
    aside = draft_path(path)
    try:
        pq.write_table(pa.Table.from_pylist(rows), aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
