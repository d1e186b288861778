"""A check of the implementation: FastRL that prunes nothing is the baseline, number for number."""

from __future__ import annotations

from analysis.claims.claim import Claim, Verdict, not_tested
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
        for step, other in zip(ours.steps, theirs.steps, strict=False):
            for column in _COMPARED:
                if step.get(column) != other.get(column):
                    finding = (
                        f"{ours.run_id} differs from {theirs.run_id} first at step {step['step']}: "
                        f"{column} is {step.get(column)!r}, not {other.get(column)!r}."
                    )
                    return Claim(key, statement, Verdict.FAILS, finding, "", ())
    finding = f"Losses, gradient norms, rewards and validations agree in every digit, n = {len(pairs)} seeds."
    return Claim(key, statement, Verdict.HOLDS, finding, "", ())
