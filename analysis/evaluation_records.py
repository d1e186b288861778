"""A finished evaluation's `results.json`, read strictly and held against the samples beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.record_error import RecordError
from analysis.sample_files import place
from analysis.sample_rows import QuestionScores, checked_scores
from analysis.step_frames import is_number
from experiments.run_directory import RunDirectory

RESULTS_SCHEMA = 1
"""The version of `results.json` that this code reads."""


@dataclass(frozen=True)
class Evaluation:
    """results: of `results.json`. scores: by decoding, from the samples; None where these are missing."""

    results: Mapping[str, Any]
    scores: Mapping[str, QuestionScores] | None


def checked_evaluation(run: RunDirectory, benchmark: str, seed: int) -> Evaluation:
    """A finished evaluation, whose results are those of its samples where these are there too.

    Raises RecordError for what can't be trusted, UserError for a file that is no JSON.
    """
    path = run.results_path(benchmark)
    where, results = place(path), run.results(benchmark)
    if results is None:
        raise RecordError(where, "the evaluation is done, but its results are missing")
    check_results(where, results)
    for name, expected in (("benchmark", benchmark), ("seed", seed)):
        found = results.get(name, expected)
        if found != expected:
            raise RecordError(where, f"{name} {found!r}, but the run's is {expected!r}")
    samples = run.samples_path(benchmark)
    return Evaluation(results, checked_scores(samples, results) if samples.exists() else None)


def check_start(start: Path) -> None:
    """Hold what a starting policy answered, a folder like a run's `eval/<benchmark>`, against its results.

    Raises RecordError for a file that is missing, damaged, or does not go with the other.
    """
    path = start / "results.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(place(path), f"can't be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(place(path), f"is not valid JSON: {error}") from None
    if not isinstance(results, dict):
        raise RecordError(place(path), f"holds {type(results).__name__}, not an object")
    check_results(place(path), results)
    checked_scores(start / "samples.parquet", results)


def check_results(where: str, results: Mapping[str, Any]) -> None:
    """Raises RecordError for results of another version, or that lack something or have impossible values."""
    if results.get("schema") != RESULTS_SCHEMA:
        raise RecordError(where, f"schema {results.get('schema')!r}, this version reads {RESULTS_SCHEMA}")
    decodings = results.get("decodings")
    if not isinstance(decodings, dict) or not decodings:
        raise RecordError(where, "no decodings")
    if not _is_count(results.get("n_questions")):
        raise RecordError(where, f"n_questions is {results.get('n_questions')!r}, not a count")
    if not isinstance(results.get("digests", {}), dict):
        raise RecordError(where, f"digests is {results['digests']!r}, not a mapping")
    for name, decoding in decodings.items():
        metrics = decoding.get("metrics") if isinstance(decoding, dict) else None
        if not isinstance(metrics, dict) or "accuracy" not in metrics:
            raise RecordError(where, f"decodings.{name}: no metrics.accuracy")
        if not is_number(decoding.get("temperature")) or not _is_count(decoding.get("samples")):
            raise RecordError(where, f"decodings.{name}: no temperature or samples")
        for metric, value in metrics.items():
            if not is_number(value) or not 0 <= value <= 1:
                raise RecordError(where, f"decodings.{name}.metrics.{metric} is {value!r}, not within [0, 1]")


def check_one_checkpoint(
    run: RunDirectory, config: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raises RecordError when benchmarks that asked the same model in the same way had different weights.

    results: of one run, by benchmark.
    """
    first: dict[str, str] = {}
    benchmarks = config.get("benchmarks")
    for name, each in results.items():
        settings = benchmarks.get(name) if isinstance(benchmarks, dict) else None
        asked = {key: (settings or {}).get(key) for key in ("lm", "lm_options")}
        digest = each.get("digests", {}).get("checkpoint")
        if not digest:
            continue
        other = first.setdefault(json.dumps(asked, sort_keys=True), name)
        before = results[other]["digests"]["checkpoint"]
        if digest != before:
            raise RecordError(
                place(run.results_path(name)),
                f"of the checkpoint {str(digest)[:10]}, while {other} was evaluated with {str(before)[:10]}; "
                f"run the stages evaluate-{other} and evaluate-{name} again",
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
