"""The data that every method works on: one training step's trajectories, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer]
FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Question:
    """A training or evaluation question.

    `id` is stable across runs and epochs; `prompt` is the text given to the policy; `answer` the gold answer;
    `family` a label for breakdowns ("" when there is none).
    """

    id: str
    prompt: str
    answer: str
    family: str = ""


@dataclass(frozen=True)
class Rollouts:
    """Trajectories of one step, flat and ragged: Q groups, N trajectories, T response tokens in all.

    A group is one visit of a question: the same question twice in a batch makes two groups.

    question_ids: Q stable ids.
    offsets: (Q + 1,) int64; group q owns trajectories `offsets[q]:offsets[q + 1]`.
    tokens: (T,) int32 or int64; response token ids, padding excluded, end-of-sequence included.
    token_offsets: (N + 1,) int64; trajectory i owns tokens `token_offsets[i]:token_offsets[i + 1]`, if any.
    rewards: (N,) float; total reward of each trajectory.
    """

    question_ids: tuple[str, ...]
    offsets: IntArray
    tokens: IntArray
    token_offsets: IntArray
    rewards: FloatArray

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.question_ids) + 1:
            raise ValueError(
                f"{self.n_groups} question ids need {self.n_groups + 1} offsets, got {len(self.offsets)}"
            )
        n = int(self.offsets[-1])
        if len(self.rewards) != n or len(self.token_offsets) != n + 1:
            raise ValueError(
                f"offsets name {n} trajectories, but there are {len(self.rewards)} rewards "
                f"and {len(self.token_offsets)} token offsets"
            )

    @property
    def n_groups(self) -> int:
        return len(self.question_ids)

    @property
    def n_trajectories(self) -> int:
        return int(self.offsets[-1])

    @property
    def group_sizes(self) -> IntArray:
        """(Q,) trajectories per group."""
        return np.diff(self.offsets)

    @property
    def group_of(self) -> IntArray:
        """(N,) the group index of each trajectory."""
        return np.repeat(np.arange(self.n_groups), self.group_sizes)

    @property
    def lengths(self) -> IntArray:
        """(N,) response lengths in tokens."""
        return np.diff(self.token_offsets)


def rollouts_from_padded(
    question_ids: Sequence[str],
    tokens: IntArray,
    lengths: IntArray,
    rewards: FloatArray,
    group_sizes: IntArray,
) -> Rollouts:
    """Build `Rollouts` from right-padded tokens (N, L) and true lengths (N,); groups are consecutive rows."""
    inside = np.arange(tokens.shape[1]) < np.asarray(lengths)[:, None]
    return Rollouts(
        question_ids=tuple(question_ids),
        offsets=np.concatenate([[0], np.cumsum(group_sizes)]).astype(np.int64),
        tokens=np.asarray(tokens)[inside],
        token_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        rewards=np.asarray(rewards),
    )
