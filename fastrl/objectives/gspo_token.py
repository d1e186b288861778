"""GSPO-token: GSPO's sequence ratio, with a gradient that each token takes for itself."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.clipped import NormalisedObjective
from fastrl.objectives.terms import clipped_surrogate, on_tokens, sum_of_token_means, token_kl


@dataclass(frozen=True)
class GspoToken(NormalisedObjective):
    """GSPO-token (arXiv:2507.18071, section 4.3): the ratio of token t is sg[s] * pi_t / sg[pi_t], with s the
    sequence ratio and sg the stopped gradient, so every token has the value s and a gradient of its own.

    Its advantages may differ from token to token: `LossInputs.advantages` (B, L) are taken as well as (B,).
    With one advantage per sequence loss and gradient are those of `Gspo`. Clip and KL as there.
    """

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        lengths = inputs.mask.sum(1, keepdim=True).clamp(min=1)
        log_ratio = on_tokens(inputs.logp - inputs.old_logp, inputs.mask)
        sequence = log_ratio.detach().sum(1, keepdim=True) / lengths
        own = sequence + (log_ratio - log_ratio.detach())  # the value of `sequence`, to the bit
        advantages = inputs.advantages if inputs.advantages.dim() == 2 else inputs.advantages[:, None]
        surrogate, clipped = clipped_surrogate(own, advantages, self.clip_low, self.clip_high)
        kl = token_kl(inputs, self.kl_coef) * inputs.mask
        losses = on_tokens(surrogate, inputs.mask) + self.kl_coef * kl
        return LossOutputs(
            sum_of_token_means(losses, inputs.mask) / size.sequences,
            (clipped * inputs.mask).sum().detach(),
            kl.sum().detach(),
        )
