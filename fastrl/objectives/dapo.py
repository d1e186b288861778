"""DAPO's loss: GRPO's advantages, a higher upper clip, and one mean over all tokens of the update."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.advantages import group_advantages
from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.terms import check_objective, token_loss
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class Dapo:
    """DAPO (arXiv:2503.14476, section 3). Its dynamic sampling is a prompt filter, not part of the loss.

    clip_low, clip_high: ratios are clipped to [1 - clip_low, 1 + clip_high] (0.2 and 0.28 in the paper).
    kl_coef: factor of the k3 KL to the reference policy, in the loss (0 in the paper).
    epsilon: added to the standard deviation of a group's rewards.
    """

    clip_low: float
    clip_high: float
    kl_coef: float
    epsilon: float

    def __post_init__(self) -> None:
        check_objective(self.clip_low, self.clip_high, self.kl_coef)

    @property
    def needs_reference(self) -> bool:
        return self.kl_coef > 0

    def advantages(self, rewards: FloatArray, offsets: IntArray) -> FloatArray:
        return group_advantages(rewards, offsets, std_normalise=True, epsilon=self.epsilon)

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        losses, clipped, kl = token_loss(inputs, self.clip_low, self.clip_high, self.kl_coef)
        return LossOutputs(losses.sum() / max(size.tokens, 1), clipped, kl)
