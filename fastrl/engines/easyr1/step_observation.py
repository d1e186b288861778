"""What a step reports of its trajectories: figures from before pruning, which EasyR1's own leave out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrl.advantages import zero_variance
from fastrl.alignment import Alignment
from fastrl.engines.easyr1.group_batch import GroupedBatch, grouped
from fastrl.engines.easyr1.reward_tap import ACCURACY, FORMAT, ScoredDraw
from fastrl.rollout_record import RolloutRecord, reasons
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection

if TYPE_CHECKING:
    from verl.protocol import DataProto


def sampling_metrics(draws: Sequence[ScoredDraw]) -> dict[str, float]:
    """Of everything that a step sampled, also of groups that a filter refused."""
    sampled = [grouped(draw.batch, draw.scores).rollouts for draw in draws]
    rewards = np.concatenate([rollouts.rewards for rollouts in sampled])
    constant = sum(int(zero_variance(each.rewards, each.offsets).sum()) for each in sampled)
    questions = sum(rollouts.n_groups for rollouts in sampled)
    return {
        "fastrl/draws": len(draws),
        "fastrl/questions": questions,
        "fastrl/trajectories": len(rewards),
        "fastrl/tokens": sum(int(rollouts.token_offsets[-1]) for rollouts in sampled),
        "fastrl/zero_variance": constant / questions,
        "fastrl/reward_mean": float(rewards.mean()),
    }


def selection_metrics(
    rollouts: Rollouts, chosen: Alignment, selection: Selection, prune_first: bool, has_reference: bool
) -> dict[str, float]:
    """Of the accepted groups: how much was kept, and how many tokens each later stage sees."""
    per_group = np.bincount(rollouts.group_of[chosen.kept], minlength=rollouts.n_groups)
    trained = int(rollouts.lengths[chosen.kept].sum())
    scored = trained if prune_first else int(rollouts.lengths.sum())
    return {
        "fastrl/accepted": rollouts.n_groups,
        "fastrl/kept": len(selection.kept),
        "fastrl/kept_aligned": len(chosen.kept),
        "fastrl/kept_per_question_mean": float(per_group.mean()),
        "fastrl/kept_per_question_max": int(per_group.max()),
        "fastrl/trained_tokens": trained,
        "fastrl/scored_tokens": scored * (2 if has_reference else 1),
    }


def rollout_record(
    batch: DataProto,
    groups: GroupedBatch,
    chosen: Alignment,
    selection: Selection,
    advantages: FloatArray,
    tokenizer: Any,
) -> RolloutRecord:
    """The accepted groups before pruning, with texts."""
    rollouts = groups.rollouts.packed()
    responses = [row.tolist() for row in np.split(rollouts.tokens, rollouts.token_offsets[1:-1])]
    kept = np.zeros(rollouts.n_trajectories, dtype=bool)
    kept[chosen.kept] = True
    return RolloutRecord(
        rollouts=rollouts,
        responses=tuple(tokenizer.batch_decode(responses, skip_special_tokens=True)),
        accuracy=batch.batch[ACCURACY].numpy()[groups.rows],
        format=batch.batch[FORMAT].numpy()[groups.rows],
        advantages=advantages,
        kept=kept,
        reason=reasons(kept, selection.reason),
    )
