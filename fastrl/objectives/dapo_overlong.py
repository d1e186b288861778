"""DAPO with its fourth part: rewards that fall where a response comes close to the generation budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastrl.objectives.dapo import Dapo
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class DapoOverlong(Dapo):
    """DAPO (arXiv:2503.14476, section 3.4), soft overlong punishment.

    A response of L tokens adds `overlong_weight` times 0 to its reward if L <= max_tokens - overlong_buffer,
    ((max_tokens - overlong_buffer) - L) / overlong_buffer up to max_tokens, and -1 beyond. Advantages and
    selectors see the shaped rewards; the recorded rewards, accuracies and prompt filters do not.

    max_tokens: the longest response that may be rewarded in full is this minus overlong_buffer; the paper has
    20480 and 4096 tokens, and weight 1.
    """

    max_tokens: int
    overlong_buffer: int
    overlong_weight: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.overlong_buffer <= self.max_tokens:
            raise ValueError(
                f"overlong_buffer={self.overlong_buffer} must be from 1 to max_tokens={self.max_tokens}"
            )
        if not self.overlong_weight >= 0:
            raise ValueError(f"overlong_weight={self.overlong_weight} must be at least 0; 0 switches it off")

    def shaped_rewards(self, rewards: FloatArray, lengths: IntArray) -> FloatArray:
        over = np.asarray(lengths, dtype=np.float64) - (self.max_tokens - self.overlong_buffer)
        return rewards - self.overlong_weight * np.clip(over / self.overlong_buffer, 0.0, 1.0)
