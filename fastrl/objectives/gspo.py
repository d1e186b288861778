"""GSPO: one ratio per sequence, the geometric mean of its token ratios, clipped as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.advantages import group_advantages
from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.terms import (
    check_objective,
    clipped_surrogate,
    on_tokens,
    sum_of_token_means,
    token_kl,
)
from fastrl.rollouts import FloatArray, IntArray


@dataclass(frozen=True)
class Gspo:
    """GSPO (arXiv:2507.18071, section 4): sequence ratio s = exp(mean over tokens of log ratio).

    With one advantage per sequence its gradient is that of GSPO-token, so one class serves both.

    clip_low, clip_high: s is clipped to [1 - clip_low, 1 + clip_high] (3e-4 and 4e-4 in the paper).
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
        lengths = inputs.mask.sum(1)
        log_ratio = on_tokens(inputs.logp - inputs.old_logp, inputs.mask).sum(1) / lengths.clamp(min=1)
        surrogate, clipped = clipped_surrogate(log_ratio, inputs.advantages, self.clip_low, self.clip_high)
        kl = token_kl(inputs, self.kl_coef) * inputs.mask
        loss = (surrogate * (lengths > 0)).sum() + self.kl_coef * sum_of_token_means(kl, inputs.mask)
        return LossOutputs(loss / size.sequences, (clipped * lengths).sum().detach(), kl.sum().detach())
