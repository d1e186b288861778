"""GRPO: group-relative advantages, clipped token ratios, mean over sequences of token means."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.clipped import NormalisedObjective
from fastrl.objectives.terms import sum_of_token_means, token_loss


@dataclass(frozen=True)
class Grpo(NormalisedObjective):
    """GRPO (DeepSeekMath, arXiv:2402.03300, section 4.1), as in EasyR1 with `loss_avg_mode=seq`.

    The paper clips to [0.8, 1.2].
    """

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        losses, clipped, kl = token_loss(inputs, self.clip_low, self.clip_high, self.kl_coef)
        return LossOutputs(sum_of_token_means(losses, inputs.mask) / size.sequences, clipped, kl)
