"""What the clipped objectives have in common: their settings, and GRPO's advantages."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.advantages import group_advantages
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class ClippedObjective:
    """clip_low, clip_high: ratios are clipped to [1 - clip_low, 1 + clip_high].

    kl_coef: factor of the k3 KL to the reference policy, in the loss; 0 for none.
    """

    clip_low: float
    clip_high: float
    kl_coef: float

    def __post_init__(self) -> None:
        if not 0 <= self.clip_low < 1:
            raise ValueError(
                f"clip_low={self.clip_low} must be in [0, 1): ratios are clipped to at least 1 - clip_low"
            )
        if not self.clip_high >= 0:
            raise ValueError(
                f"clip_high={self.clip_high} must be at least 0: ratios are clipped to 1 + clip_high"
            )
        if not self.kl_coef >= 0:
            raise ValueError(f"kl_coef={self.kl_coef} must be at least 0; 0 switches the KL term off")

    @property
    def needs_reference(self) -> bool:
        return self.kl_coef > 0


@dataclass(frozen=True)
class NormalisedObjective(ClippedObjective):
    """A clipped objective with GRPO's advantages, (r - mean) / (std + epsilon) of the reward's group."""

    epsilon: float

    def advantages(self, rewards: FloatArray, offsets: IntArray) -> FloatArray:
        return group_advantages(rewards, offsets, std_normalise=True, epsilon=self.epsilon)
