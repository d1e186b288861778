"""What the engine reports about a step: the flat step record, and the trajectories themselves."""

from __future__ import annotations

import time

import numpy as np

from fastrl.engines.reference.batch import Batch
from fastrl.engines.reference.collect import SamplingTotals
from fastrl.engines.reference.selection import Chosen
from fastrl.engines.reference.update import UpdateTotals
from fastrl.rollout_record import RolloutRecord, reasons

StepRecord = dict[str, float | int | None]
"""Flat and JSON-able. None: nothing to average over, as the loss of a step without updates."""


def rollout_record(batch: Batch, chosen: Chosen) -> RolloutRecord:
    kept = np.zeros(batch.rollouts.n_trajectories, dtype=bool)
    kept[chosen.kept] = True
    return RolloutRecord(
        rollouts=batch.rollouts,
        responses=batch.responses,
        accuracy=batch.accuracy,
        format=batch.format,
        advantages=chosen.full_advantages,
        kept=kept,
        reason=reasons(kept, chosen.reason),
    )


def step_record(
    *,
    step: int,
    epoch: int,
    n: int,
    sampling: SamplingTotals,
    accepted: int,
    selected: int,
    kept_per_group: np.ndarray,
    updates: UpdateTotals,
    scored_tokens: int,
    has_reference: bool,
    learning_rate: float,
) -> StepRecord:
    """The keys of one step, without timing, validation and checkpoints.

    `rollout/*` and `reward/*` are about everything that was sampled, accepted or not; so are
    `select/zero_variance`, the share of groups whose rewards are all equal, and `actor/entropy`, the mean of
    -log p over sampled tokens, an unbiased estimate of the entropy in nats under the sampling distribution
    that pruning does not touch. `actor/kl` is the mean k3 estimate per token against the reference. Tokens
    are response tokens: `tokens/total` = generated + trained on + passed through old and reference log-probs.
    """
    rewarded = sampling.trajectories - sampling.dropped
    return {
        "step": step,
        "epoch": epoch,
        "time": time.time(),
        "rollout/n": n,
        "rollout/questions": sampling.questions,
        "rollout/skipped": sampling.skipped,
        "rollout/trajectories": sampling.trajectories,
        "rollout/tokens": sampling.tokens,
        "rollout/draws": sampling.draws,
        "rollout/accepted": accepted,
        "select/kept": selected,
        "select/kept_aligned": int(kept_per_group.sum()),
        "select/kept_per_question_mean": _mean(kept_per_group.sum(), accepted),
        "select/kept_per_question_max": int(kept_per_group.max(initial=0)),
        "select/zero_variance": _mean(sampling.zero_variance, sampling.questions),
        "reward/mean": _mean(sampling.reward, rewarded),
        "reward/accuracy": _mean(sampling.accuracy, rewarded),
        "reward/format": _mean(sampling.format, rewarded),
        "reward/dropped": sampling.dropped,
        "actor/loss": _mean(updates.loss, updates.updates),
        "actor/entropy": _mean(sampling.surprisal, sampling.tokens),
        "actor/kl": _mean(updates.kl, updates.tokens) if has_reference else None,
        "actor/clipfrac": _mean(updates.clipped_tokens, updates.tokens),
        "actor/grad_norm": _mean(updates.grad_norm, updates.updates),
        "actor/updates": updates.updates,
        "actor/lr": learning_rate,
        "tokens/generated": sampling.tokens,
        "tokens/trained": updates.tokens,
        "tokens/total": sampling.tokens + updates.tokens + scored_tokens,
    }


def _mean(total: float, count: int) -> float | None:
    return float(total) / count if count else None
