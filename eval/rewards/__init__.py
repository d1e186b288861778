"""Rewards: what a response to a question is worth. A reward is a frozen dataclass of settings with a call."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from fastrl.rewards import RewardFunction

REWARDS: dict[str, str] = {
    "benchmark_accuracy_format": "eval.rewards.benchmark_accuracy_format:BenchmarkAccuracyFormat",
    "boxed_accuracy_format": "eval.rewards.boxed_accuracy_format:BoxedAccuracyFormat",
    "grounding": "eval.rewards.grounding:Grounding",
}
"""`name` of a reward config -> its class, imported when it is used."""


def build_reward(config: Mapping[str, Any]) -> RewardFunction:
    """The reward function of a `reward` config: `name` picks it, the other keys are its fields.

    Raises ValueError for an unknown name or field and for a missing field.
    """
    fields = dict(config)
    name = fields.pop("name", None)
    if name not in REWARDS:
        raise ValueError(f"unknown reward {name!r}; known: {', '.join(sorted(REWARDS))}")
    module, _, reward = REWARDS[name].partition(":")
    try:
        built: RewardFunction = getattr(importlib.import_module(module), reward)(**fields)
    except TypeError as error:
        raise ValueError(f"reward {name!r} cannot be built from {fields}: {error}") from error
    return built
