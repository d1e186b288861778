"""Rewards: what a response to a question is worth. A reward is a frozen dataclass of settings with a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eval.rewards.boxed_accuracy_format import BoxedAccuracyFormat
from fastrl.rewards import RewardFunction

REWARDS: dict[str, Callable[..., RewardFunction]] = {
    "boxed_accuracy_format": BoxedAccuracyFormat,
}


def build_reward(config: Mapping[str, Any]) -> RewardFunction:
    """The reward function of a `reward` config: `name` picks it, the other keys are its fields.

    Raises ValueError for an unknown name or field and for a missing field.
    """
    fields = dict(config)
    name = fields.pop("name", None)
    if name not in REWARDS:
        raise ValueError(f"unknown reward {name!r}; known: {', '.join(sorted(REWARDS))}")
    try:
        return REWARDS[name](**fields)
    except TypeError as error:
        raise ValueError(f"reward {name!r} cannot be built from {fields}: {error}") from error
