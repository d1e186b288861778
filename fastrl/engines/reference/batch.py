"""The trajectories of one training step, with what the engine knows about them beyond `Rollouts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrl.rollouts import BoolArray, Rollouts


@dataclass(frozen=True)
class Batch:
    """Q groups with N trajectories.

    prompts: Q lists of token ids. rollouts: the groups. accuracy, format: (N,) float64, parts of the rewards.
    responses: N texts.
    """

    prompts: tuple[list[int], ...]
    rollouts: Rollouts
    accuracy: NDArray[np.float64]
    format: NDArray[np.float64]
    responses: tuple[str, ...]


def restrict(batch: Batch, trajectories: BoolArray) -> Batch:
    """The batch with these trajectories (N,) alone; groups left without any are gone."""
    if trajectories.all():
        return batch
    rollouts = batch.rollouts
    sizes = np.bincount(rollouts.group_of[trajectories], minlength=rollouts.n_groups)
    groups = np.flatnonzero(sizes)
    return Batch(
        prompts=tuple(batch.prompts[q] for q in groups),
        rollouts=Rollouts(
            question_ids=tuple(rollouts.question_ids[q] for q in groups),
            offsets=_offsets(sizes[groups]),
            tokens=rollouts.tokens[np.repeat(trajectories, rollouts.lengths)],
            token_offsets=_offsets(rollouts.lengths[trajectories]),
            rewards=rollouts.rewards[trajectories],
        ),
        accuracy=batch.accuracy[trajectories],
        format=batch.format[trajectories],
        responses=tuple(batch.responses[i] for i in np.flatnonzero(trajectories)),
    )


def restrict_to_groups(batch: Batch, groups: BoolArray) -> Batch:
    """The batch with these groups (Q,) alone."""
    return restrict(batch, np.asarray(groups, dtype=bool)[batch.rollouts.group_of])


def concatenate(batches: Sequence[Batch]) -> Batch:
    """All groups of the batches, in order."""
    if len(batches) == 1:
        return batches[0]
    parts = [batch.rollouts for batch in batches]
    return Batch(
        prompts=tuple(prompt for batch in batches for prompt in batch.prompts),
        rollouts=Rollouts(
            question_ids=tuple(name for part in parts for name in part.question_ids),
            offsets=_offsets(_joined([part.group_sizes for part in parts], np.int64)),
            tokens=_joined([part.tokens for part in parts], np.int64),
            token_offsets=_offsets(_joined([part.lengths for part in parts], np.int64)),
            rewards=_joined([part.rewards for part in parts], np.float64),
        ),
        accuracy=_joined([batch.accuracy for batch in batches], np.float64),
        format=_joined([batch.format for batch in batches], np.float64),
        responses=tuple(text for batch in batches for text in batch.responses),
    )


def _offsets(sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)
