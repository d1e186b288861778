"""The terms that objectives are made of: clipped surrogate, k3 KL, and exact sums over a ragged batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrl.objectives.base import LossInputs

if TYPE_CHECKING:
    from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Bound on a log ratio before exp, as in EasyR1 (core_algos.py), so that no ratio overflows."""

MAX_K3 = 10.0
"""Bound on one token's k3 estimate, as in EasyR1; beyond it the KL has no gradient."""


def clipped_surrogate(
    log_ratio: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = exp(log_ratio), and where it is clipped.

    Shapes broadcast against each other. The second tensor is 1 where the clipped branch is the one in effect
    (so the gradient is cut off), else 0.
    """
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    free = ratio * advantages
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high) * advantages
    return -free.minimum(clipped), (clipped < free).to(log_ratio.dtype)


def k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """Per-token estimate exp(d) - d - 1 of KL(policy || reference), d = ref - logp, with EasyR1's bounds."""
    difference = (ref_logp - logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return (difference.exp() - difference - 1).clamp(-MAX_K3, MAX_K3)


def token_loss(
    inputs: LossInputs, clip_low: float, clip_high: float, kl_coef: float
) -> tuple[Tensor, Tensor, Tensor]:
    """GRPO's loss of every token, before any mean: clipped surrogate of its ratio plus `kl_coef` times k3.

    Returns (B, L) losses, 0 outside the mask, and for logging the number of clipped tokens and the sum of k3.
    """
    log_ratio = on_tokens(inputs.logp - inputs.old_logp, inputs.mask)
    surrogate, clipped = clipped_surrogate(log_ratio, inputs.advantages[:, None], clip_low, clip_high)
    kl = token_kl(inputs, kl_coef)
    return surrogate * inputs.mask + kl_coef * kl, (clipped * inputs.mask).sum().detach(), kl.sum().detach()


def token_kl(inputs: LossInputs, kl_coef: float) -> Tensor:
    """(B, L) k3 on response tokens, 0 elsewhere; 0 everywhere when the coefficient is 0.

    ValueError when the coefficient is not 0 and the reference log-probs are missing.
    """
    if kl_coef == 0:
        return inputs.mask.new_zeros(())
    if inputs.ref_logp is None:
        raise ValueError(f"kl_coef={kl_coef} needs reference log-probs, but ref_logp is None")
    return on_tokens(k3(inputs.logp, inputs.ref_logp), inputs.mask)


def on_tokens(values: Tensor, mask: Tensor) -> Tensor:
    """`values` on response tokens and exactly 0 elsewhere, whatever stands in the padding (NaN included)."""
    return values.where(mask > 0, values.new_zeros(()))


def sum_of_token_means(values: Tensor, mask: Tensor) -> Tensor:
    """The sum over sequences of the mean over their tokens; a sequence without tokens adds 0.

    `values` (B, L) are 0 outside the mask.
    """
    return (values.sum(1) / mask.sum(1).clamp(min=1)).sum()
