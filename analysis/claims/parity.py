"""A check of the implementation: FastRL that prunes nothing is the baseline, number for number."""

from __future__ import annotations

import numpy as np

from analysis.claims.claim import Claim, Verdict, not_tested
from analysis.records import RunRecord
from analysis.study import Study

_COMPARED = ("actor/loss", "actor/entropy", "actor/grad_norm", "reward/mean", "val/accuracy")


def nothing_pruned_is_baseline(study: Study) -> Claim:
    """The arms tagged "parity" against the baseline: their step logs must agree in every digit."""
    key = "nothing_pruned_is_baseline"
    statement = f"FastRL with τ = 0 and a fixed schedule reproduces {study.baseline.label} exactly."
    arms = study.tagged("parity")
    records = study.records
    pairs = [
        (records[arm.runs[seed]], records[study.baseline.runs[seed]])
        for arm in arms
        for seed in arm.runs
        if arm.runs[seed] in records and study.baseline.runs.get(seed) in records
    ]
    pairs = [(ours, theirs) for ours, theirs in pairs if ours.trained and theirs.trained]
    if not pairs:
        return not_tested(key, statement, "The study has no finished parity run.")
    for ours, theirs in pairs:
        difference = _first_difference(ours, theirs)
        if difference:
            finding = f"{ours.run_id} differs from {theirs.run_id} first at {difference}."
            return Claim(key, statement, Verdict.FAILS, finding, "", ())
    finding = f"Losses, gradient norms, rewards and validations agree in every digit, n = {len(pairs)} seeds."
    return Claim(key, statement, Verdict.HOLDS, finding, "", ())


def _first_difference(ours: RunRecord, theirs: RunRecord) -> str:
    """The first step and value in which two step logs differ, "" when they agree as far as both go."""
    if ours.steps is None or theirs.steps is None:
        return ""
    rows, columns = min(len(ours.steps), len(theirs.steps)), list(_COMPARED)
    one = ours.steps.reindex(columns=columns).iloc[:rows].to_numpy(float)
    other = theirs.steps.reindex(columns=columns).iloc[:rows].to_numpy(float)
    differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
    if not differs.any():
        return ""
    row, column = (int(index) for index in np.argwhere(differs)[0])
    step = int(ours.steps["step"].iloc[row])
    return f"step {step}: {_COMPARED[column]} is {one[row, column]}, not {other[row, column]}"
