"""What the stages of a training step cost: seconds as sums of a few terms, each a rate times an amount."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Amount = Literal[
    "steps",
    "longest",
    "sampled_trajectories",
    "sampled_tokens",
    "scored_trajectories",
    "scored_tokens",
    "kept_trajectories",
    "kept_tokens",
]
"""What a stage's seconds can grow with: steps (a fixed cost each), the longest response of a step (the number
of decoding steps of a batch that is sampled at once), or trajectories or response tokens that were sampled,
passed through old and reference log-probs, or trained on."""

Source = Literal["measured", "derived"]

STAGE_GROWTH: Mapping[str, Amount] = {
    "gen": "sampled_tokens",
    "reward": "sampled_tokens",
    "adv": "sampled_tokens",
    "select": "sampled_tokens",
    "old": "scored_tokens",
    "ref": "scored_tokens",
    "update_actor": "kept_tokens",
}
"""The stages of a step in their order, and what each grows with."""

LEAST_SPREAD = 1.25
"""Runs whose mean amounts differ by this factor tell a stage's fixed cost from its cost per token."""


class CostError(ValueError):
    """Records that no cost can be read from."""


@dataclass(frozen=True)
class Work:
    """The amounts of one step, or their sum over steps."""

    steps: float
    longest: float
    sampled_trajectories: float
    sampled_tokens: float
    scored_trajectories: float
    scored_tokens: float
    kept_trajectories: float
    kept_tokens: float

    def plus(self, other: Work) -> Work:
        return Work(**{name: value + getattr(other, name) for name, value in vars(self).items()})


NO_WORK = Work(0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class StageCosts:
    """stages: for each stage its terms, seconds per unit of an amount. unit: "s" (wall) or "CPU-s".

    name: what the costs were read from. source: "measured" from step records, or "derived" from published
    figures; note says how.
    """

    name: str
    source: Source
    unit: str
    note: str
    stages: Mapping[str, Mapping[Amount, float]]

    def seconds(self, work: Work) -> dict[str, float]:
        """Seconds of each stage for this work."""
        return {
            stage: sum(rate * float(getattr(work, amount)) for amount, rate in terms.items())
            for stage, terms in self.stages.items()
        }


def fit_costs(
    name: str,
    runs: Sequence[Sequence[Mapping[str, Any]]],
    prefix: Literal["timing_s", "cpu_s"],
    longest: Sequence[Mapping[int, int]],
) -> StageCosts:
    """Costs from the step records (`steps.jsonl`) of one or several runs of the same model and engine.

    Least squares over steps with terms that are never negative. With one run, a stage costs so much per
    token (its mean): the tokens of a run's steps differ too little to tell a fixed cost from them. With runs
    whose mean tokens differ by `LEAST_SPREAD` or more, a stage also has a fixed cost per step. Generation has
    a term for the longest response where `longest`, one mapping from step to tokens a run, knows every step.

    CostError for records without the keys of a step, or without a token.
    """
    records = [[record for record in run if record.get("step")] for run in runs]
    if not records or not all(records):
        raise CostError("no training step is recorded, so no cost can be read from the run")
    stages: dict[str, Mapping[Amount, float]] = {}
    spread_out = []
    for stage, grows_with in STAGE_GROWTH.items():
        seconds = _column(records, f"{prefix}/{stage}")
        amounts = [np.array([_tokens(record, grows_with) for record in run]) for run in records]
        known = stage == "gen" and all(
            record["step"] in lengths for run, lengths in zip(records, longest, strict=True) for record in run
        )
        columns: dict[Amount, NDArray[np.float64]] = {grows_with: np.concatenate(amounts)}
        if known:
            columns["longest"] = np.array(
                [lengths[r["step"]] for run, lengths in zip(records, longest, strict=True) for r in run],
                dtype=np.float64,
            )
        means = [float(amount.mean()) for amount in amounts]
        if max(means) == 0:
            if seconds.any():
                raise CostError(f"the stage {stage} took time, but no token of it is recorded")
            continue
        if min(means) > 0 and max(means) / min(means) >= LEAST_SPREAD:
            columns["steps"] = np.ones(len(seconds))
            spread_out.append(stage)
        stages[stage] = _non_negative_fit(columns, seconds)
    fixed = (
        f"; with a fixed cost per step: {', '.join(spread_out)}"
        if spread_out
        else "; fixed costs can't be told from runs that train on as many tokens, so speeds are upper bounds"
    )
    terms = "seconds per token" + (" and per longest response" if "longest" in stages.get("gen", {}) else "")
    return StageCosts(
        name=name,
        source="measured",
        unit="CPU-s" if prefix == "cpu_s" else "s",
        note=f"{terms}, from {sum(map(len, records))} steps of {len(records)} run(s){fixed}",
        stages=stages,
    )


def _column(records: Sequence[Sequence[Mapping[str, Any]]], key: str) -> NDArray[np.float64]:
    return np.array([_number(record, key) for run in records for record in run])


def _number(record: Mapping[str, Any], key: str) -> float:
    value = record.get(key)
    if not isinstance(value, int | float):
        raise CostError(f"step {record.get('step')} has no number for {key}")
    return float(value)


def _tokens(record: Mapping[str, Any], grows_with: Amount) -> float:
    """The tokens of a step record: sampled, trained on, or scored by the old (and the reference) policy."""
    if grows_with == "sampled_tokens":
        return _number(record, "tokens/generated")
    if grows_with == "kept_tokens":
        return _number(record, "tokens/trained")
    scored = _number(record, "tokens/total") - _number(record, "tokens/generated")
    scored -= _number(record, "tokens/trained")
    return scored / 2 if record.get("actor/kl") is not None else scored


def _non_negative_fit(
    columns: Mapping[Amount, NDArray[np.float64]], seconds: NDArray[np.float64]
) -> dict[Amount, float]:
    """Least squares with coefficients >= 0: the best of all subsets of columns whose free fit has none below.

    Scaled afterwards so that the total is that of the records.
    """
    best: tuple[float, dict[Amount, float]] | None = None
    for size in range(1, len(columns) + 1):
        for names in itertools.combinations(columns, size):
            matrix = np.stack([columns[name] for name in names], axis=1)
            fitted, *_ = np.linalg.lstsq(matrix, seconds, rcond=None)
            if (fitted < 0).any():
                continue
            residual = float(((matrix @ fitted - seconds) ** 2).sum())
            if best is None or residual < best[0] * (1 - 1e-12):
                best = residual, {name: float(rate) for name, rate in zip(names, fitted, strict=True)}
    assert best is not None, "one column of amounts and seconds >= 0 always has a fit"
    rates = best[1]
    predicted = sum(rate * float(columns[name].sum()) for name, rate in rates.items())
    scale = float(seconds.sum()) / predicted if predicted else 1.0
    return {name: rate * scale for name, rate in rates.items()}
