"""Scores question by question, from the samples of an evaluation, paired between two arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.crossed_bootstrap import PairedComparison, compare_all
from analysis.record_error import RecordError
from analysis.sample_files import place
from analysis.sample_rows import QuestionScores
from analysis.study import Arm, Study
from experiments.plan import OWN_TEST
from experiments.run_directory import RunDirectory

_SEED = 0


def paired_comparisons(
    study: Study, pairs: Sequence[tuple[Arm, Arm]], benchmark: str
) -> dict[str, PairedComparison | str]:
    """The first of each pair of arms against the second, by the first one's id.

    A comparison is on the questions and seeds that both have, or else a sentence on why there is none.
    """
    decoding = study.main_decoding(benchmark)

    def scores(run_id: str, own: str) -> QuestionScores:
        found, path = study.records[run_id].evaluations[own].scores, _samples(study, run_id, own)
        if found is None:
            raise RecordError(path, "the samples of a finished evaluation are missing")
        if decoding not in found:
            raise RecordError(path, f"no samples of {decoding}")
        return found[decoding]

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
    return run_id in study.records and benchmark in study.records[run_id].evaluations


def _samples(study: Study, run_id: str, benchmark: str) -> str:
    return place(RunDirectory(study.root / "runs" / run_id).samples_path(benchmark))
