"""Dr.GRPO: GRPO without the divisions that bias it, by the group's deviation and by a response's length."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.advantages import group_advantages
from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.clipped import ClippedObjective
from fastrl.objectives.terms import token_loss
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class DrGrpo(ClippedObjective):
    """Dr.GRPO (arXiv:2503.20783, section 3.2): advantage r - mean; token sums over a constant length.

    max_tokens: the constant that every response's token sum is divided by, usually the generation budget. The
    paper clips to [0.8, 1.2] and has no KL.
    """

    max_tokens: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens} must be at least 1: token sums are divided by it")

    def advantages(self, rewards: FloatArray, offsets: IntArray) -> FloatArray:
        return group_advantages(rewards, offsets, std_normalise=False, epsilon=0.0)

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        losses, clipped, kl = token_loss(inputs, self.clip_low, self.clip_high, self.kl_coef)
        return LossOutputs(losses.sum() / self.max_tokens / size.sequences, clipped, kl)
