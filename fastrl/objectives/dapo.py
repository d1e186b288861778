"""DAPO's loss: GRPO's advantages, a higher upper clip, and one mean over all tokens of the update."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.objectives.base import LossInputs, LossOutputs, UpdateSize
from fastrl.objectives.clipped import NormalisedObjective
from fastrl.objectives.terms import token_loss


@dataclass(frozen=True)
class Dapo(NormalisedObjective):
    """DAPO (arXiv:2503.14476, section 3). Its dynamic sampling is a prompt filter, not part of the loss.

    The paper clips to [0.8, 1.28] and has no KL.
    """

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        losses, clipped, kl = token_loss(inputs, self.clip_low, self.clip_high, self.kl_coef)
        return LossOutputs(losses.sum() / max(size.tokens, 1), clipped, kl)
