"""Held-out questions with images, and what policies answer them before and after training, by method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.evaluation_records import check_start
from analysis.record_error import RecordError
from analysis.sample_files import place, read_columns
from analysis.study import Arm, Study
from experiments.plan import OWN_TEST
from experiments.run_directory import RunDirectory

DECODING, SAMPLED = "greedy", "t1"
"""One answer a question, the likeliest; and the samples of which the right ones are counted."""

_IMAGE_MARK = "<image>"
ANSWER_COLUMNS = ("decoding", "question_id", "extracted", "correct")
"""What is read of a `samples.parquet`."""

_QUESTION_COLUMNS = ["question_id", "prompt", "answer", "family", "images"]


@dataclass(frozen=True)
class Answer:
    """The answer that was found in the greedy response, None when there was none, and whether it is right.

    right, samples: how many sampled responses were right, of how many; 0 of 0 when none were sampled.
    """

    text: str | None
    correct: bool
    right: int
    samples: int

    @property
    def rate(self) -> float:
        """The share of right samples; without any, whether the greedy answer is right."""
        return self.right / self.samples if self.samples else float(self.correct)


@dataclass(frozen=True)
class Example:
    """A question as it is asked, its gold answer, its first image as a file, and the answers by column."""

    question: str
    gold: str
    image: bytes
    answers: tuple[Answer | None, ...]


@dataclass(frozen=True)
class Examples:
    """columns: "before training", then the methods, all of one seed. benchmark: whose questions they are.

    damaged: files of methods that could not be read, and why; their answers are None.
    """

    benchmark: str
    seed: int
    columns: tuple[str, ...]
    rows: tuple[Example, ...]
    damaged: tuple[str, ...]


def examples(study: Study, count: int) -> Examples | str:
    """Up to `count` questions of the in-domain benchmark, each of another family, or why there are none.

    Where each run's own test set counts, the baseline's is shown, with the methods that trained on it.
    Shown are the runs of the lowest seed with a finished evaluation. Of a family the question is taken that
    was the middle one by its share of right answers before training, neither an easy nor a hard one.
    """
    named = study.plan.report.in_domain
    benchmark = study.baseline.dataset if named == OWN_TEST else named
    runs = _evaluated(study, benchmark)
    if not runs:
        return "no main method with a finished evaluation"
    seed = min(seed for _, seed, _ in runs)
    shown = [(arm, run) for arm, own, run in runs if own == seed]
    start = shown[0][1].start_path(benchmark)
    if start is None or not (start / "questions.parquet").is_file():
        return "no record of the starting policy on questions with images"
    try:
        check_start(start)
        questions = _questions(start / "questions.parquet")
        before = _answers(start / "samples.parquet")
    except RecordError as error:
        return str(error)
    after, damaged = [], []
    for _, run in shown:
        try:
            after.append(_answers(run.samples_path(benchmark)))
        except RecordError as error:
            after.append({})
            damaged.append(str(error))
    rows = [(_example(question, [before, *after]), str(question["family"])) for question in questions]
    if not any(row.answers[0] for row, _ in rows):
        return f"no {DECODING} answers"
    columns = ("before training", *(arm.label for arm, _ in shown))
    return Examples(benchmark, seed, columns, _chosen(rows, count), tuple(damaged))


def _questions(path: Path) -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = read_columns(path, _QUESTION_COLUMNS).to_pylist()
    counted = Counter(question["question_id"] for question in questions)
    for row, question in enumerate(questions, start=1):
        if counted[question["question_id"]] > 1:
            raise RecordError(f"{place(path)}, row {row}", f"{question['question_id']} is there twice")
    return questions


def _evaluated(study: Study, benchmark: str) -> list[tuple[Arm, int, RunDirectory]]:
    return [
        (arm, seed, RunDirectory(study.root / "runs" / run_id))
        for arm in study.tagged("main")
        for seed, run_id in arm.runs.items()
        if run_id in study.records and benchmark in study.records[run_id].evaluations
    ]


def _chosen(rows: Sequence[tuple[Example, str]], count: int) -> tuple[Example, ...]:
    by_family: dict[str, list[Example]] = {}
    for example, family in rows:
        by_family.setdefault(family, []).append(example)
    middle = [sorted(members, key=_start)[len(members) // 2] for _, members in sorted(by_family.items())]
    return tuple(middle[:count])


def _start(example: Example) -> float:
    """The share of right answers before training, -1 without an answer."""
    before = example.answers[0]
    return before.rate if before else -1.0


def _example(question: Mapping[str, Any], columns: Sequence[Mapping[str, Answer]]) -> Example:
    return Example(
        question=" ".join(str(question["prompt"]).replace(_IMAGE_MARK, " ").split()),
        gold=str(question["answer"]),
        image=question["images"][0] if question["images"] else b"",
        answers=tuple(answers.get(question["question_id"]) for answers in columns),
    )


def _answers(path: Path) -> dict[str, Answer]:
    rows: list[dict[str, Any]] = read_columns(path, ANSWER_COLUMNS).to_pylist()
    samples, right = Counter[str](), Counter[str]()
    for row in rows:
        if row["decoding"] == SAMPLED:
            samples[row["question_id"]] += 1
            right[row["question_id"]] += bool(row["correct"])
    greedy = {row["question_id"]: row for row in rows if row["decoding"] == DECODING}
    return {
        name: Answer(row["extracted"], bool(row["correct"]), right[name], samples[name])
        for name, row in greedy.items()
    }
