"""Held-out questions with images, and what policies answer them before and after training, by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.records import RecordError
from analysis.study import Arm, Study
from experiments.run_directory import RunDirectory

DECODING = "greedy"
"""One answer a question: the likeliest."""

_IMAGE_MARK = "<image>"
ANSWER_COLUMNS = ("decoding", "question_id", "extracted", "correct")
"""What is read of a `samples.parquet`."""

_QUESTION_COLUMNS = ["question_id", "prompt", "answer", "family", "images"]


@dataclass(frozen=True)
class Answer:
    """The answer that was found in a response, None when there was none, and whether it is right."""

    text: str | None
    correct: bool


@dataclass(frozen=True)
class Example:
    """A question as it is asked, its gold answer, its first image as a file, and the answers by column."""

    question: str
    gold: str
    image: bytes
    answers: tuple[Answer | None, ...]


@dataclass(frozen=True)
class Examples:
    """columns: "before training", then the methods, all of one seed. benchmark: whose questions they are."""

    benchmark: str
    seed: int
    columns: tuple[str, ...]
    rows: tuple[Example, ...]


def examples(study: Study, count: int) -> Examples | str:
    """Up to `count` questions of the in-domain benchmark, each of another family, or why there are none.

    Shown are the runs of the lowest seed with a finished evaluation. Of a family the question is taken whose
    answers differ most between the columns, the first of equals: so it says nothing of how often they do.
    """
    benchmark = study.plan.report.in_domain
    runs = _evaluated(study, benchmark)
    if not runs:
        return "no main method with a finished evaluation"
    seed = min(seed for _, seed, _ in runs)
    shown = [(arm, run) for arm, own, run in runs if own == seed]
    start = shown[0][1].start_path(benchmark)
    if start is None or not (start / "questions.parquet").is_file():
        return "no record of the starting policy on questions with images"
    try:
        questions = _table(start / "questions.parquet", _QUESTION_COLUMNS)
        before = _answers(start / "samples.parquet")
        after = [_answers(run.samples_path(benchmark)) for _, run in shown]
    except RecordError as error:
        return str(error)
    rows = [(_example(question, [before, *after]), str(question["family"])) for question in questions]
    if not any(row.answers[0] for row, _ in rows):
        return f"no {DECODING} answers"
    columns = ("before training", *(arm.label for arm, _ in shown))
    return Examples(benchmark, seed, columns, _chosen(rows, count))


def _evaluated(study: Study, benchmark: str) -> list[tuple[Arm, int, RunDirectory]]:
    return [
        (arm, seed, RunDirectory(study.root / "runs" / run_id))
        for arm in study.tagged("main")
        for seed, run_id in arm.runs.items()
        if run_id in study.records and benchmark in study.records[run_id].results
    ]


def _chosen(rows: Sequence[tuple[Example, str]], count: int) -> tuple[Example, ...]:
    by_family: dict[str, list[Example]] = {}
    for example, family in rows:
        by_family.setdefault(family, []).append(example)
    best = [max(members, key=_variety) for _, members in sorted(by_family.items())]
    return tuple(best[:count])


def _variety(example: Example) -> int:
    return len({answer.text if answer else None for answer in example.answers})


def _example(question: Mapping[str, Any], columns: Sequence[Mapping[str, Answer]]) -> Example:
    return Example(
        question=" ".join(str(question["prompt"]).replace(_IMAGE_MARK, " ").split()),
        gold=str(question["answer"]),
        image=question["images"][0] if question["images"] else b"",
        answers=tuple(answers.get(question["question_id"]) for answers in columns),
    )


def _answers(path: Path) -> dict[str, Answer]:
    return {
        row["question_id"]: Answer(row["extracted"], bool(row["correct"]))
        for row in _table(path, list(ANSWER_COLUMNS))
        if row["decoding"] == DECODING
    }


def _table(path: Path, columns: list[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = "/".join(path.parts[-5:])
    try:
        rows: list[dict[str, Any]] = pq.read_table(path, columns=columns, use_threads=False).to_pylist()
    except FileNotFoundError:
        raise RecordError(where, "the samples of a finished evaluation are missing") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RecordError(where, f"can't be read: {str(error).splitlines()[0]}") from None
    missing = [name for name in columns if rows and name not in rows[0]]
    if missing:
        raise RecordError(where, f"no column {missing[0]}")
    return rows
