"""The rows of a `samples.parquet` as arrays, and whether they are those that `results.json` was made from."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.record_error import RecordError
from analysis.sample_files import place, read_columns

if TYPE_CHECKING:
    from pyarrow import ChunkedArray

SAMPLE_COLUMNS = ("decoding", "question_id", "correct", "sample")
"""What is read of a `samples.parquet`."""

NOTES = b"notes"
"""The key of the file's metadata with what it was made from, as JSON."""

_ROUNDING = 1e-9

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SampleRows:
    """decodings, questions: the names that `decoding` and `question` are indices of.

    decoding, question: (rows,) int64. sample: (rows,) int64, from 0 within a question. correct: (rows,)
    float64 in [0, 1]. notes: what the file says that it was made from, empty when it does not.
    """

    decodings: tuple[str, ...]
    decoding: Integers
    questions: tuple[str, ...]
    question: Integers
    sample: Integers
    correct: NDArray[np.float64]
    notes: Mapping[str, str]


@dataclass(frozen=True)
class QuestionScores:
    """The share of correct responses to each question, which are in order. shares: (questions,) float64."""

    questions: tuple[str, ...]
    shares: NDArray[np.float64]


def read_rows(path: Path) -> SampleRows:
    """Raises RecordError for a file that is missing, damaged, lacks a column, a value or is out of range."""
    import pyarrow as pa

    where = place(path)
    table = read_columns(path, SAMPLE_COLUMNS, dictionary=("decoding", "question_id"))
    for name in SAMPLE_COLUMNS:
        if table[name].null_count:
            row = table[name].is_null().to_pylist().index(True) + 1
            raise RecordError(f"{where}, row {row}", f"{name} is null")
    try:
        correct = table["correct"].cast(pa.float64()).to_numpy()
        sample = table["sample"].cast(pa.int64()).to_numpy()
        decodings, decoding = _coded(table["decoding"])
        questions, question = _coded(table["question_id"])
    except pa.ArrowException as error:
        raise RecordError(where, f"can't be read: {str(error).splitlines()[0]}") from None
    outside = ~((correct >= 0) & (correct <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        raise RecordError(f"{where}, row {row + 1}", f"correct is {correct[row]:g}, not within [0, 1]")
    notes = _notes((table.schema.metadata or {}).get(NOTES, b"{}"))
    return SampleRows(decodings, decoding, questions, question, sample, correct, notes)


def checked_scores(path: Path, results: Mapping[str, Any]) -> dict[str, QuestionScores]:
    """Scores by decoding, of samples that are each asked one once, and what the results were made from.

    results: of the `results.json` beside the file, checked by themselves.
    Raises RecordError for other samples, and as `read_rows` does.
    """
    where, rows = place(path), read_rows(path)
    origin = {"settings_digest": results.get("settings_digest"), **results.get("digests", {})}
    for name, digest in origin.items():
        if rows.notes.get(name, digest) != digest:
            raise RecordError(
                where, f"made with {name} {rows.notes[name][:10]}, but results.json with {str(digest)[:10]}"
            )
    further = set(rows.decodings) - results["decodings"].keys()
    if further:
        raise RecordError(where, f"has samples of {min(further)}, which results.json has not")
    absent = results["decodings"].keys() - set(rows.decodings)
    if absent:
        raise RecordError(where, f"no samples of {min(absent)}")
    each = {name: results["decodings"][name]["samples"] for name in rows.decodings}
    limits = np.array([min(limit, len(rows.sample) + 1) for limit in each.values()], dtype=np.int64)
    groups = rows.decoding * len(rows.questions) + rows.question
    _check_single(where, rows, groups, limits)
    asked = np.bincount(groups, minlength=len(rows.decodings) * len(rows.questions))
    shape = len(rows.decodings), len(rows.questions)
    right = np.bincount(groups, rows.correct, len(asked)).reshape(shape)
    # Python's sort, for files mostly hold the questions in order.
    order = sorted(range(len(rows.questions)), key=rows.questions.__getitem__)
    ordered = tuple(rows.questions[index] for index in order)
    scores = {}
    for index, counts in enumerate(asked.reshape(shape)):
        name, limit = rows.decodings[index], each[rows.decodings[index]]
        uneven = (counts > 0) & (counts != limits[index])
        if uneven.any():
            at = int(np.argmax(uneven))
            raise RecordError(
                where,
                f"{rows.questions[at]} has {counts[at]} samples of {name}, results.json says {limit} each",
            )
        answered = int((counts > 0).sum())
        if answered != results["n_questions"]:
            raise RecordError(
                where,
                f"{answered} questions have samples of {name}, results.json has {results['n_questions']}",
            )
        given = right[index].sum() / counts.sum()
        _check_accuracy(path, name, results["decodings"][name]["metrics"], limit, given)
        shares, questions = right[index][order] / limit, ordered
        if answered < len(questions):  # other decodings had other questions
            present = counts[order] > 0
            shares, questions = shares[present], tuple(itertools.compress(questions, present))
        scores[name] = QuestionScores(questions, shares)
    return scores


def _check_single(where: str, rows: SampleRows, groups: Integers, limits: Integers) -> None:
    """Raises RecordError for a sample that is there twice, or has a number beyond those that were asked."""
    own = limits[rows.decoding]
    beyond = (rows.sample < 0) | (rows.sample >= own)
    keys = groups * (limits.max() + 1) + rows.sample
    doubled = np.zeros(len(keys), dtype=np.bool_)
    if not (np.diff(keys) > 0).all():  # as files are written, the keys rise
        doubled[:] = True
        doubled[np.unique(keys, return_index=True)[1]] = False
    wrong = beyond | doubled
    if wrong.any():
        row = int(np.argmax(wrong))
        decoding, question = rows.decodings[rows.decoding[row]], rows.questions[rows.question[row]]
        reason = f"is not one of {own[row]}" if beyond[row] else "is there twice"
        raise RecordError(
            f"{where}, row {row + 1}", f"sample {rows.sample[row]} of {question}, {decoding}, {reason}"
        )


def _check_accuracy(path: Path, name: str, metrics: Mapping[str, float], limit: int, given: float) -> None:
    """Refuse metrics that are not the mean of the samples."""
    for metric in ("accuracy", f"avg_at_{limit}"):
        value = metrics.get(metric, given)
        if abs(value - given) > _ROUNDING:
            raise RecordError(
                place(path.with_name("results.json")),
                f"decodings.{name}.metrics.{metric} is {value:.6g}, but samples.parquet gives {given:.6g}",
            )


def _coded(column: ChunkedArray) -> tuple[tuple[str, ...], Integers]:
    """The names in a column of strings, and each row's index among them."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    coded = column.unify_dictionaries().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # of an empty file
        return (), np.empty(0, dtype=np.int64)
    # Runs were mostly asked the same questions: each name is kept once.
    names = [sys.intern(name) for name in coded.dictionary.to_pylist()]
    codes = coded.indices.to_numpy().astype(np.int64)
    used = np.bincount(codes, minlength=len(names)) > 0
    if used.all():
        return tuple(names), codes
    return tuple(name for name, each in zip(names, used, strict=True) if each), (used.cumsum() - 1)[codes]


def _notes(text: bytes) -> Mapping[str, str]:
    """What a file says of its origin; nothing where it says it otherwise than as a mapping of words."""
    try:
        notes = json.loads(text)
    except ValueError:
        return {}
    return (
        {key: value for key, value in notes.items() if isinstance(value, str)}
        if isinstance(notes, dict)
        else {}
    )
