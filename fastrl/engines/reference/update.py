"""The second half of a step: optimizer updates on the kept trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fastrl.engines.reference.logprobs import Scorer, Sequences, response_logprobs
from fastrl.engines.reference.optimizer import PolicyOptimizer
from fastrl.objectives.base import LossInputs, Objective, UpdateSize


class TrainingDiverged(RuntimeError):
    """A loss or gradient that is not finite."""


@dataclass(frozen=True)
class TrainingRows:
    """K kept trajectories. old_logp, ref_logp: (K, L) float32. advantages: (K,) float32, weights applied."""

    sequences: Sequences
    old_logp: Tensor
    ref_logp: Tensor | None
    advantages: Tensor


@dataclass(frozen=True)
class UpdateTotals:
    """Sums over the updates of a step; `tokens` are the response tokens trained on."""

    updates: int
    tokens: int
    loss: float
    grad_norm: float
    clipped_tokens: float
    kl: float


def update_policy(
    scorer: Scorer,
    optimizer: PolicyOptimizer,
    objective: Objective,
    rows: TrainingRows,
    parts: Sequence[Tensor],
    *,
    temperature: float,
    micro_batch: int,
    learning_rate_scale: float,
    max_grad_norm: float,
    where: str,
) -> UpdateTotals:
    """One optimizer step for each part (row numbers), in micro-batches of rows that are alike in length.

    TrainingDiverged, naming `where`, if a gradient is not finite; the policy then is as before that update.
    """
    losses, norms, clipped, kl = [], [], [], []
    tokens = 0
    for number, part in enumerate(parts, start=1):
        sequences = rows.sequences.take(part)
        size = UpdateSize(sequences=len(part), tokens=int(sequences.response_lengths.sum()))
        for local in sequences.batches(micro_batch):
            inputs = _loss_inputs(scorer, rows, sequences.take(local), part[local], temperature)
            outputs = objective.loss(inputs, size)
            optimizer.backward(outputs.loss)
            losses.append(outputs.loss.detach())
            clipped.append(outputs.clipped_tokens)
            kl.append(outputs.kl_sum)
        norm = optimizer.step(learning_rate_scale, max_grad_norm)
        if not torch.isfinite(norm):
            raise TrainingDiverged(
                f"{where}, update {number} of {len(parts)}: the gradient norm is {norm.item()}; lower "
                "training.learning_rate or training.max_grad_norm, or look at the rewards of this step"
            )
        norms.append(norm)
        tokens += size.tokens
    return UpdateTotals(
        updates=len(parts),
        tokens=tokens,
        loss=_total(losses),
        grad_norm=_total(norms),
        clipped_tokens=_total(clipped),
        kl=_total(kl),
    )


def _loss_inputs(
    scorer: Scorer, rows: TrainingRows, sequences: Sequences, index: Tensor, temperature: float
) -> LossInputs:
    logp = response_logprobs(scorer, sequences, temperature)
    width = logp.shape[1]
    return LossInputs(
        logp=logp,
        old_logp=rows.old_logp[index, :width],
        ref_logp=None if rows.ref_logp is None else rows.ref_logp[index, :width],
        mask=sequences.response_mask(width).float(),
        advantages=rows.advantages[index],
    )


def _total(values: Sequence[Tensor]) -> float:
    return float(torch.stack(list(values)).double().sum()) if values else 0.0
