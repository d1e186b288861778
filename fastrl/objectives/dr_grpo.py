"""Dr.GRPO: GRPO without the divisions that bias it, by the group's deviation and by a response's length."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.advantages import group_advantages
from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.terms import check_objective, token_loss
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class DrGrpo:
    """Dr.GRPO (arXiv:2503.20783, section 3.2): advantage r - mean; token sums over a constant length.

    clip_low, clip_high: ratios are clipped to [1 - clip_low, 1 + clip_high] (0.2 and 0.2 in the paper).
    kl_coef: factor of the k3 KL to the reference policy, in the loss (0 in the paper).
    max_tokens: the constant that every response's token sum is divided by, usually the generation budget.
    """

    clip_low: float
    clip_high: float
    kl_coef: float
    max_tokens: int

    def __post_init__(self) -> None:
        check_objective(self.clip_low, self.clip_high, self.kl_coef)
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens} must be at least 1: token sums are divided by it")

    @property
    def needs_reference(self) -> bool:
        return self.kl_coef > 0

    def advantages(self, rewards: FloatArray, offsets: IntArray) -> FloatArray:
        return group_advantages(rewards, offsets, std_normalise=False, epsilon=0.0)

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        losses, clipped, kl = token_loss(inputs, self.clip_low, self.clip_high, self.kl_coef)
        return LossOutputs(losses.sum() / self.max_tokens / size.sequences, clipped, kl)
