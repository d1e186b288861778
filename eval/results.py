"""The record of a benchmark: `results.json` and `samples.parquet`, and the way from the second to the first.

Schemas: docs/design.md. Every file is written aside and renamed, so that it is whole or not there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eval.benchmark_settings import BenchmarkSettings, DecodingSettings
from eval.decoding import derived_seed
from eval.pass_at_k import avg_at_k, maj_at_k, pass_at_k, question_intervals
from eval.protocols.base import BenchmarkQuestion
from fastrl.rollouts import BoolArray, FloatArray, IntArray, Question

SCHEMA = 1
SAMPLES = pa.schema(
    [
        pa.field("decoding", pa.string(), nullable=False),
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("family", pa.string(), nullable=False),
        pa.field("sample", pa.int32(), nullable=False),
        pa.field("response", pa.string(), nullable=False),
        pa.field("extracted", pa.string()),
        pa.field("correct", pa.bool_(), nullable=False),
        pa.field("undecided", pa.bool_(), nullable=False),
        pa.field("formatted", pa.bool_()),
        pa.field("truncated", pa.bool_()),
        pa.field("tokens", pa.int32()),
    ]
)
"""One row per (decoding, question, sample): decodings as the benchmark orders them, questions as the data set
does, samples from 0. undecided: only a judge could tell, so not correct. extracted is null where no answer
was found, formatted where the benchmark asks for no form, truncated and tokens where the model does not
say."""

_KEYS = {
    "schema",
    "benchmark",
    "settings_digest",
    "seed",
    "n_questions",
    "decodings",
    "digests",
    "checkpoint",
    "seconds",
}


class RecordError(ValueError):
    """A record that cannot be read: not the file it should be."""


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write `results.json`. Raises ValueError for a NaN in it, and leaves no half-written file."""
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    _replace(path, lambda aside: aside.write_text(text))


def read_results(path: Path) -> dict[str, Any]:
    """Raises RecordError for a file that is no results.json of this schema, FileNotFoundError for none."""
    try:
        results = json.loads(path.read_text())
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    if not isinstance(results, dict) or not results.keys() >= _KEYS:
        raise RecordError(f"{path} lacks some of the keys {', '.join(sorted(_KEYS))}")
    if results["schema"] != SCHEMA:
        raise RecordError(f"{path} has schema {results['schema']}, this version reads {SCHEMA}")
    return results


def write_samples(path: Path, samples: pa.Table, notes: Mapping[str, str]) -> None:
    """Write a table of the schema `SAMPLES`, with notes that `read_samples` returns."""
    table = samples.replace_schema_metadata({"notes": json.dumps(dict(notes))})
    _replace(path, lambda aside: pq.write_table(table, aside))


def read_samples(path: Path) -> tuple[pa.Table, dict[str, str]]:
    """The table and its notes. Raises RecordError for a file that is none, FileNotFoundError for no file."""
    try:
        table = pq.read_table(path)
        notes: dict[str, str] = json.loads((table.schema.metadata or {})[b"notes"])
    except FileNotFoundError:
        raise
    except (OSError, KeyError, ValueError) as error:  # pyarrow raises the first and the last
        raise RecordError(f"{path} is not a table of samples: {error}") from error
    if table.schema.remove_metadata() != SAMPLES:
        columns = ", ".join(table.schema.names)
        raise RecordError(f"{path} has other columns than a table of samples: {columns}")
    return table, notes


def decoding_results(
    samples: pa.Table, name: str, settings: BenchmarkSettings, seed: int, questions: Sequence[Question]
) -> dict[str, Any]:
    """The entry of one decoding in `results.json`, from its rows of `SAMPLES` and the questions in order.

    `breakdown` holds accuracy by the family of a question, or by each of its official labels; a question
    counts in every label it has. `intervals` holds (low, high) of each metric: the draw of questions, not of
    training seeds.
    """
    decoding = settings.decodings[name]
    correct = np.asarray(samples["correct"].to_numpy()).reshape(-1, decoding.samples)
    answers = _codes(samples["extracted"].to_pylist()).reshape(-1, decoding.samples)
    metrics = _metrics(correct, answers, decoding, settings.pass_k)
    bounds = question_intervals(
        np.stack(list(metrics.values()), axis=1),
        settings.interval.level,
        settings.interval.resamples,
        np.random.default_rng(derived_seed(seed, settings.name, name, "interval")),
    )
    return {
        "temperature": decoding.temperature,
        "samples": decoding.samples,
        "metrics": {metric: float(values.mean()) for metric, values in metrics.items()},
        "intervals": dict(zip(metrics, bounds.tolist(), strict=True)),
        "breakdown": _breakdown(questions, metrics["accuracy"]),
        "undecided_rate": _mean(samples["undecided"].to_pylist()),
        "truncation_rate": _mean(samples["truncated"].to_pylist()),
        "extraction_failure_rate": samples["extracted"].null_count / len(samples),
        "format_rate": _mean(samples["formatted"].to_pylist()),
        "mean_tokens": _mean(samples["tokens"].to_pylist()),
    }


def _metrics(
    correct: BoolArray, answers: IntArray, decoding: DecodingSettings, pass_k: Sequence[int]
) -> dict[str, FloatArray]:
    """(Q,) values per question of each metric; correct and answers are (Q, n)."""
    n = decoding.samples
    accuracy = avg_at_k(correct, n)
    if decoding.greedy:
        return {"accuracy": accuracy}
    n_correct = correct.sum(axis=1)
    return {
        "accuracy": accuracy,
        f"avg_at_{n}": accuracy,
        **{f"pass_at_{k}": pass_at_k(n_correct, n, k) for k in pass_k},
        f"maj_at_{n}": maj_at_k(answers, correct, n),
    }


def _codes(answers: Sequence[str | None]) -> IntArray:
    """Equal codes for equal answers, -1 for none."""
    seen: dict[str, int] = {}
    return np.array([-1 if answer is None else seen.setdefault(answer, len(seen)) for answer in answers])


def _breakdown(questions: Sequence[Question], accuracy: FloatArray) -> dict[str, dict[str, dict[str, float]]]:
    members: dict[str, dict[str, list[int]]] = {}
    for index, question in enumerate(questions):
        for kind, names in _labels(question).items():
            for label in names:
                members.setdefault(kind, {}).setdefault(label, []).append(index)
    return {
        kind: {
            label: {"n": len(indices), "accuracy": float(accuracy[indices].mean())}
            for label, indices in sorted(labels.items())
        }
        for kind, labels in members.items()
    }


def _labels(question: Question) -> Mapping[str, Sequence[str]]:
    if isinstance(question, BenchmarkQuestion):
        return question.labels
    return {"family": (question.family,)} if question.family else {}


def _mean(values: Sequence[float | None]) -> float | None:
    """None when any value is unknown: a mean of the others would pass for one of all."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not by the process id, which a process on another machine may have, too.
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
    try:
        write(aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
