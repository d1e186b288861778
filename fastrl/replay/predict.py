"""From the work of a step to its seconds, and to the speed over a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fastrl.replay.costs import CostError, StageCosts, Work


@dataclass(frozen=True)
class Prediction:
    """A method's mean step. kept, sampled: trajectories per question. stages: seconds of each stage.

    speed: the baseline's seconds of a step over these.
    """

    label: str
    kept: float
    sampled: float
    stages: dict[str, float]
    step: float
    speed: float


@dataclass(frozen=True)
class StepMeans:
    """What a prediction needs of a method: work of its mean step, kept and sampled per question."""

    label: str
    kept: float
    sampled: float
    work: Work


def predict(costs: StageCosts, baseline: StepMeans, methods: Sequence[StepMeans]) -> list[Prediction]:
    """Predictions for the baseline (speed 1) and the methods, in this order."""
    whole = sum(costs.seconds(baseline.work).values())
    if whole <= 0:
        raise CostError(f"the costs {costs.name} give the baseline a step of {whole} {costs.unit}")
    return [_predicted(costs, means, whole) for means in (baseline, *methods)]


def means_of_counts(label: str, questions: float, sampled: float, kept: float) -> StepMeans:
    """A step of which only mean counts per question are known; pruned before old and reference log-probs.

    ValueError unless 0 < kept <= sampled. Costs that grow with tokens can't be used with it.
    """
    if not 0 < kept <= sampled:
        raise ValueError(f"kept {kept:g} of {sampled:g} trajectories per question; 0 < kept <= sampled")
    nan = float("nan")
    return StepMeans(
        label,
        kept,
        sampled,
        Work(1, nan, questions * sampled, nan, questions * kept, nan, questions * kept, nan),
    )


def _predicted(costs: StageCosts, means: StepMeans, whole: float) -> Prediction:
    for stage, terms in costs.stages.items():
        unknown = [amount for amount in terms if math.isnan(getattr(means.work, amount))]
        if unknown:
            raise CostError(
                f"the costs {costs.name} of {stage} grow with {unknown[0]}, which counts per question do not "
                "give; name recorded rollouts, or a profile by trajectories"
            )
    stages = costs.seconds(means.work)
    step = sum(stages.values())
    return Prediction(means.label, means.kept, means.sampled, stages, step, whole / step)
