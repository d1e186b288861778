"""GRPO: group-relative advantages, clipped token ratios, mean over sequences of token means."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.advantages import group_advantages
from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.terms import check_objective, sum_of_token_means, token_loss
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class Grpo:
    """GRPO (DeepSeekMath, arXiv:2402.03300, section 4.1), as in EasyR1 with `loss_avg_mode=seq`.

    clip_low, clip_high: ratios are clipped to [1 - clip_low, 1 + clip_high] (0.2 and 0.2 in the paper).
    kl_coef: factor of the k3 KL to the reference policy, in the loss; 0 for none.
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
        return LossOutputs(sum_of_token_means(losses, inputs.mask) / size.sequences, clipped, kl)
