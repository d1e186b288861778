"""Scores question by question, from the samples of an evaluation, paired between two arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.crossed_bootstrap import PairedComparison, compare_all
from analysis.record_error import RecordError
from analysis.sample_files import place
from analysis.sample_rows import read_rows
from analysis.study import Arm, Study
from experiments.plan import OWN_TEST
from experiments.run_directory import RunDirectory

_SEED = 0


@dataclass(frozen=True)
class QuestionScores:
    """The share of correct responses to each question, which are in order."""

    questions: tuple[str, ...]
    shares: NDArray[np.float64]


def question_scores(path: Path, decoding: str) -> QuestionScores:
    """Scores of one decoding in a `samples.parquet`.

    Raises RecordError for a file that is missing, damaged, lacks a column or holds nothing of the decoding.
    """
    rows = read_rows(path)
    if decoding not in rows.decodings:
        raise RecordError(place(path), f"no samples of {decoding}")
    own = rows.decoding == rows.decodings.index(decoding)
    codes, names = rows.question[own], rows.questions
    asked = np.bincount(codes, minlength=len(names))
    shares = np.bincount(codes, rows.correct[own], len(names)) / np.maximum(asked, 1)
    # Python's sort, for files mostly hold the names in order. Other decodings may have had other questions.
    order = [index for index in sorted(range(len(names)), key=names.__getitem__) if asked[index]]
    return QuestionScores(tuple(names[index] for index in order), shares[order])


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
