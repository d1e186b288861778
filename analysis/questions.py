"""Scores question by question, from the samples of an evaluation, paired between two arms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from analysis.crossed_bootstrap import PairedComparison, compare
from analysis.records import RecordError
from analysis.study import Arm, Study
from experiments.run_directory import RunDirectory

_SEED = 0
_COLUMNS = ["decoding", "question_id", "correct"]


def question_scores(path: Path, decoding: str) -> Mapping[str, float]:
    """Share of correct responses by question id, of one decoding of a `samples.parquet`.

    Raises RecordError for a file that is missing, damaged, lacks a column or holds nothing of the decoding.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = "/".join(path.parts[-5:])
    try:
        table = pq.read_table(path, columns=_COLUMNS, filters=[("decoding", "=", decoding)])
    except FileNotFoundError:
        raise RecordError(where, "the samples of a finished evaluation are missing") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RecordError(where, f"can't be read: {str(error).splitlines()[0]}") from None
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing or not len(table):
        raise RecordError(where, f"no column {missing[0]}" if missing else f"no samples of {decoding}")
    if table["correct"].null_count:
        raise RecordError(where, "correct has values that are null")
    frame = table.select(["question_id", "correct"]).to_pandas()
    means = frame.groupby("question_id", sort=True)["correct"].mean()
    return {str(question): float(value) for question, value in means.items()}


def paired_comparison(study: Study, arm: Arm, against: Arm, benchmark: str) -> PairedComparison | str:
    """Two arms on the questions and seeds that both have, or why they can't be compared."""
    seeds = [
        seed
        for seed, run_id in arm.runs.items()
        if _evaluated(study, run_id, benchmark) and _evaluated(study, against.runs.get(seed, ""), benchmark)
    ]
    if not seeds:
        return "no seed in common with finished evaluations"
    decoding = study.main_decoding(benchmark)
    rows = []
    try:
        for seed in seeds:
            ours, theirs = (
                question_scores(_samples_path(study, each.runs[seed], benchmark), decoding)
                for each in (arm, against)
            )
            if ours.keys() != theirs.keys():
                return f"seed {seed} was asked other questions"
            rows.append([ours[question] - theirs[question] for question in ours])
    except RecordError as error:
        return str(error)
    if len({len(row) for row in rows}) > 1:
        return "the seeds were asked different numbers of questions"
    return compare(np.array(rows), _SEED)


def _evaluated(study: Study, run_id: str, benchmark: str) -> bool:
    return run_id in study.records and benchmark in study.records[run_id].results


def _samples_path(study: Study, run_id: str, benchmark: str) -> Path:
    return RunDirectory(study.root / "runs" / run_id).samples_path(benchmark)
