"""Which arms a figure has room for."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.study import Arm, Study

MOST_ARMS = 16
"""Lines or bars of a figure that can still be told apart."""


def few_arms(study: Study, arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """All arms, or when they are too many the first of those with the baseline's policy and questions."""
    if len(arms) <= MOST_ARMS:
        return tuple(arms)
    task = (study.baseline.model, study.baseline.dataset)
    return tuple(arm for arm in arms if (arm.model, arm.dataset) == task)[:MOST_ARMS]


def left_out(study: Study, arms: Sequence[Arm]) -> str:
    """A sentence for the caption on what `few_arms` left out, led by a space; "" when that is nothing."""
    shown = few_arms(study, arms)
    if len(shown) == len(arms):
        return ""
    return (
        f" {len(shown)} of {len(arms)} arms are shown, of {study.baseline.model} on {study.baseline.dataset}."
    )
