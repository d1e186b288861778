"""Scores question by question, from the samples of an evaluation, paired between two arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.crossed_bootstrap import PairedComparison, compare_all
from analysis.records import RecordError
from analysis.sample_files import place, read_columns
from analysis.study import Arm, Study
from experiments.plan import OWN_TEST
from experiments.run_directory import RunDirectory

_SEED = 0

SAMPLE_COLUMNS = ("decoding", "question_id", "correct")
"""What is read of a `samples.parquet`."""


@dataclass(frozen=True)
class QuestionScores:
    """The share of correct responses to each question, which are in order."""

    questions: tuple[str, ...]
    shares: NDArray[np.float64]


def question_scores(path: Path, decoding: str) -> QuestionScores:
    """Scores of one decoding in a `samples.parquet`.

    Raises RecordError for a file that is missing, damaged, lacks a column or holds nothing of the decoding.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    where = place(path)
    table = read_columns(path, SAMPLE_COLUMNS, dictionary=("decoding", "question_id"))
    try:
        table = table.filter(pc.equal(table["decoding"], decoding)).unify_dictionaries()
        correct = table["correct"].cast(pa.float64())
        questions = table["question_id"].combine_chunks()
        if not pa.types.is_dictionary(questions.type):
            questions = questions.cast(pa.string()).dictionary_encode()
    except pa.ArrowException as error:
        raise RecordError(where, f"can't be read: {str(error).splitlines()[0]}") from None
    if not len(table):
        raise RecordError(where, f"no samples of {decoding}")
    for name, column in (("correct", correct), ("question_id", questions)):
        if column.null_count:
            raise RecordError(where, f"{name} has values that are null")
    names, codes = np.array(questions.dictionary.to_pylist()), questions.indices.to_numpy()
    values = correct.to_numpy()
    if not ((values >= 0) & (values <= 1)).all():
        raise RecordError(where, "correct has values outside [0, 1]")
    asked = np.bincount(codes, minlength=len(names))
    shares = np.bincount(codes, values, len(names)) / np.maximum(asked, 1)
    order = np.argsort(names)
    order = order[asked[order] > 0]  # the dictionary has other decodings' questions too
    return QuestionScores(tuple(names[order].tolist()), shares[order])


def paired_comparisons(
    study: Study, pairs: Sequence[tuple[Arm, Arm]], benchmark: str
) -> dict[str, PairedComparison | str]:
    """The first of each pair of arms against the second, by the first one's id.

    A comparison is on the questions and seeds that both have, or else a sentence on why there is none.
    """
    decoding = study.main_decoding(benchmark)

    @cache
    def scores(run_id: str, own: str) -> QuestionScores:
        path = RunDirectory(study.root / "runs" / run_id).samples_path(own)
        return question_scores(path, decoding)

    found: dict[str, NDArray[np.float64] | str] = {}
    for arm, against in pairs:
        own = arm.dataset if benchmark == OWN_TEST else benchmark
        found[arm.id] = _differences(study, arm, against, own, scores)
    matrices = {arm_id: each for arm_id, each in found.items() if not isinstance(each, str)}
    results: dict[str, PairedComparison | str] = {
        arm_id: each for arm_id, each in found.items() if isinstance(each, str)
    }
    for shape in dict.fromkeys(each.shape for each in matrices.values()):
        alike = {arm_id: each for arm_id, each in matrices.items() if each.shape == shape}
        results |= dict(zip(alike, compare_all(list(alike.values()), _SEED), strict=True))
    return results


def _differences(
    study: Study, arm: Arm, against: Arm, benchmark: str, scores: Callable[[str, str], QuestionScores]
) -> NDArray[np.float64] | str:
    """(seeds, questions) differences of scores, or a sentence on why there are none."""
    seeds = [
        seed
        for seed, run_id in arm.runs.items()
        if _evaluated(study, run_id, benchmark) and _evaluated(study, against.runs.get(seed, ""), benchmark)
    ]
    if not seeds:
        return "no seed in common with finished evaluations"
    rows = []
    try:
        for seed in seeds:
            ours, theirs = (scores(each.runs[seed], benchmark) for each in (arm, against))
            if ours.questions != theirs.questions:
                return f"seed {seed} was asked other questions"
            rows.append(ours.shares - theirs.shares)
    except RecordError as error:
        return str(error)
    if len({len(row) for row in rows}) > 1:
        return "the seeds were asked different numbers of questions"
    return np.array(rows)


def _evaluated(study: Study, run_id: str, benchmark: str) -> bool:
    return run_id in study.records and benchmark in study.records[run_id].results
