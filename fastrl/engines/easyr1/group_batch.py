"""EasyR1's batch of trajectories as `Rollouts`, and the selector's choice as rows of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastrl.engines.easyr1.question_loader import QUESTION_ID
from fastrl.rollouts import FloatArray, Rollouts

if TYPE_CHECKING:
    from verl.protocol import DataProto


@dataclass(frozen=True)
class GroupedBatch:
    """rollouts: the batch's trajectories by group. rows: (N,) the batch row of each of them."""

    rollouts: Rollouts
    rows: NDArray[np.int64]


def grouped(batch: DataProto, scores: torch.Tensor) -> GroupedBatch:
    """Groups are the rows of one `uid`, in the order in which they first occur.

    scores: (N, L) token-level scores; a trajectory's reward is their sum. Raises ValueError for a reward that
    is not finite, with its question's id.
    """
    uids = batch.non_tensor_batch["uid"]
    first: dict[str, int] = {}
    group = np.array([first.setdefault(uid, len(first)) for uid in uids])
    rows = np.argsort(group, kind="stable")
    rewards = scores.sum(dim=-1).numpy()[rows]
    questions = batch.non_tensor_batch[QUESTION_ID]
    bad = np.flatnonzero(~np.isfinite(rewards))
    if len(bad):
        raise ValueError(
            f"question {questions[rows[bad[0]]]!r}: the reward of a response is {rewards[bad[0]]}; "
            "mend the reward function, whose values must be finite"
        )
    mask = batch.batch["response_mask"].numpy()
    owners = dict(zip(uids, questions, strict=True))
    rollouts = Rollouts.from_padded(
        [str(owners[uid]) for uid in first],
        batch.batch["responses"].numpy()[rows],
        mask.sum(axis=1)[rows],
        rewards,
        np.bincount(group),
    )
    return GroupedBatch(rollouts, rows)


def row_advantages(advantages: torch.Tensor, mask: torch.Tensor) -> FloatArray:
    """(N,) the advantage of each trajectory, of (N, L) ones that are the same on all its tokens."""
    first = mask.argmax(dim=-1, keepdim=True)
    values: FloatArray = (advantages.gather(1, first) * mask.gather(1, first)).squeeze(1).numpy()
    return values


def spread(values: FloatArray, mask: torch.Tensor) -> torch.Tensor:
    """(N, L) float32: each trajectory's advantage on all its tokens."""
    return torch.from_numpy(np.asarray(values, dtype=np.float32)).unsqueeze(1) * mask


def plain(metrics: dict[str, Any]) -> dict[str, float]:
    """Means of lists of numbers, as EasyR1's loggers want plain floats."""
    return {key: float(np.mean(values)) for key, values in metrics.items()}
