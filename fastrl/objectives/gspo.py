"""GSPO: one ratio per sequence, the geometric mean of its token ratios, clipped as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.clipped import NormalisedObjective
from fastrl.objectives.terms import clipped_surrogate, on_tokens, sum_of_token_means, token_kl


@dataclass(frozen=True)
class Gspo(NormalisedObjective):
    """GSPO (arXiv:2507.18071, section 4): sequence ratio s = exp(mean over tokens of log ratio).

    With one advantage per sequence its gradient is that of GSPO-token, so one class serves both. The paper
    clips s to [1 - 3e-4, 1 + 4e-4] and has no KL.
    """

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        lengths = inputs.mask.sum(1)
        log_ratio = on_tokens(inputs.logp - inputs.old_logp, inputs.mask).sum(1) / lengths.clamp(min=1)
        surrogate, clipped = clipped_surrogate(log_ratio, inputs.advantages, self.clip_low, self.clip_high)
        kl = token_kl(inputs, self.kl_coef) * inputs.mask
        loss = (surrogate * (lengths > 0)).sum() + self.kl_coef * sum_of_token_means(kl, inputs.mask)
        return LossOutputs(loss / size.sequences, (clipped * lengths).sum().detach(), kl.sum().detach())
