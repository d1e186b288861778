"""The data that every method works on: one training step's trajectories, in groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.integer]
FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Question:
    """A training or evaluation question.

    `id` is stable across runs and epochs; `prompt` is the text given to the policy; `answer` the gold answer;
    `family` a label for breakdowns ("" when there is none). `images` are PIL images, one for each `<image>`
    in `prompt`, in its order.
    """

    id: str
    prompt: str
    answer: str
    family: str = ""
    images: tuple[Any, ...] = field(default=(), hash=False, repr=False)


@dataclass(frozen=True)
class Rollouts:
    """Trajectories of one step, ragged: Q groups, N trajectories, T response tokens in all.

    A group is one visit of a question: the same question twice in a batch makes two groups.

    question_ids: Q stable ids.
    offsets: (Q + 1,) int64; group q owns trajectories `offsets[q]:offsets[q + 1]`.
    tokens: (T,) int32 or int64; response token ids, padding excluded, end-of-sequence included.
    token_offsets: (N + 1,) int64; trajectory i owns tokens `token_offsets[i]:token_offsets[i + 1]`, if any.
    rewards: (N,) float; total reward of each trajectory.
    row_stride: None for the above. With a number, `tokens` is a flat view of right-padded rows, and
        trajectory i owns its length's worth of tokens from `i * row_stride` on; see `from_padded`.
    """

    question_ids: tuple[str, ...]
    offsets: IntArray
    tokens: IntArray
    token_offsets: IntArray
    rewards: FloatArray
    row_stride: int | None = None

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

    @classmethod
    def from_ragged(
        cls,
        question_ids: Sequence[str],
        offsets: ArrayLike,
        tokens: ArrayLike,
        token_offsets: ArrayLike,
        rewards: ArrayLike,
    ) -> Rollouts:
        """From arrays or torch CPU tensors, whose memory is shared, not copied."""
        return cls(
            question_ids=tuple(question_ids),
            offsets=np.asarray(offsets),
            tokens=_token_ids(tokens, 1),
            token_offsets=np.asarray(token_offsets),
            rewards=np.asarray(rewards),
        )

    @classmethod
    def from_padded(
        cls,
        question_ids: Sequence[str],
        tokens: ArrayLike,
        lengths: ArrayLike,
        rewards: ArrayLike,
        group_sizes: ArrayLike,
    ) -> Rollouts:
        """From right-padded token ids (N, L) and true lengths (N,); groups are consecutive rows.

        Arrays or torch CPU tensors, whose memory is shared: the padding stays where it is and is never read
        as a token. Only rows whose tokens do not follow each other in memory are copied. `packed` gives the
        form without padding. ValueError if a length does not fit its row.
        """
        rows, sizes = _token_ids(tokens, 2), np.asarray(lengths)
        if len(sizes) != len(rows) or (len(sizes) and not 0 <= sizes.min() <= sizes.max() <= rows.shape[1]):
            raise ValueError(
                f"{len(rows)} rows of {rows.shape[1]} token ids need {len(rows)} lengths of 0 to "
                f"{rows.shape[1]}, got {len(sizes)}: {sizes.tolist()[:8]}"
            )
        if rows.strides[1] != rows.itemsize or rows.strides[0] < rows.shape[1] * rows.itemsize:
            rows = np.ascontiguousarray(rows)
        stride = max(rows.strides[0] // rows.itemsize, rows.shape[1])
        extent = (len(rows) - 1) * stride + rows.shape[1] if len(rows) else 0
        return cls(
            question_ids=tuple(question_ids),
            offsets=np.concatenate([[0], np.cumsum(group_sizes)]).astype(np.int64),
            tokens=as_strided(rows, shape=(extent,), strides=(rows.itemsize,), writeable=False),
            token_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            rewards=np.asarray(rewards),
            row_stride=stride,
        )

    def packed(self) -> Rollouts:
        """The same trajectories with their tokens one after the other, without padding."""
        if self.row_stride is None:
            return self
        shift = np.repeat(self.token_starts - self.token_offsets[:-1], self.lengths)
        tokens = self.tokens[np.arange(len(shift)) + shift]
        return dataclasses.replace(self, tokens=tokens, row_stride=None)

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

    @property
    def token_starts(self) -> IntArray:
        """(N,) where in `tokens` each trajectory begins; it goes on for its length."""
        if self.row_stride is None:
            return self.token_offsets[:-1]
        return np.arange(self.n_trajectories) * self.row_stride


def _token_ids(tokens: ArrayLike, dimensions: int) -> IntArray:
    ids = np.asarray(tokens)
    if ids.ndim != dimensions or not (np.issubdtype(ids.dtype, np.integer) or ids.size == 0):
        raise ValueError(
            f"token ids of shape {ids.shape} and type {ids.dtype}; integers in {dimensions}-d are needed"
        )
    return ids
