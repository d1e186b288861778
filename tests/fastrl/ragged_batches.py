"""Batches as they may come: ragged groups, the same question twice, empty responses, any float type."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from fastrl.rollouts import Rollouts

REWARDS = (0.0, 0.5, 1.0, 1.5)


def batch_of(
    groups: Sequence[Sequence[float]],
    responses: Sequence[Sequence[int]] | None = None,
    dtype: type = np.float64,
    question_ids: Sequence[str] | None = None,
) -> Rollouts:
    """A batch from its groups' rewards and, flat over the batch, the responses' token ids (empty if None)."""
    sizes = [len(group) for group in groups]
    if responses is None:
        responses = [()] * sum(sizes)
    return Rollouts(
        question_ids=tuple(question_ids or [f"q{i}" for i in range(len(groups))]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        tokens=np.array([token for response in responses for token in response], dtype=np.int32),
        token_offsets=np.cumsum([0, *map(len, responses)], dtype=np.int64),
        rewards=np.array([reward for group in groups for reward in group], dtype=dtype),
    )


def responses_of(rollouts: Rollouts) -> list[list[int]]:
    """The responses' token ids, one list per trajectory."""
    spans = zip(rollouts.token_starts.tolist(), rollouts.lengths.tolist(), strict=True)
    return [rollouts.tokens[start : start + length].tolist() for start, length in spans]


def members(rollouts: Rollouts) -> list[range]:
    """The indices of each group's trajectories."""
    return [range(a, b) for a, b in pairwise(rollouts.offsets.tolist())]


@st.composite
def batches(
    draw: st.DrawFn, largest_group: int = 9, most_groups: int = 5, continuous: bool = False
) -> Rollouts:
    """Batches with twelve distinct tokens, so that responses are often alike, and questions that may repeat.

    Rewards are four levels, or `continuous`. Drawn as raw bytes: many times faster than item by item.
    """
    sizes = draw(st.lists(st.integers(1, largest_group), min_size=1, max_size=most_groups))
    total = sum(sizes)
    raw = np.frombuffer(draw(st.binary(min_size=2 * total, max_size=2 * total)), dtype=np.uint8)
    if continuous:
        rewards = np.clip(np.nan_to_num(raw.view(np.float16).astype(np.float64)), -100, 100)
    else:
        rewards = np.array(REWARDS)[raw[:total] % 4]
    words = np.frombuffer(draw(st.binary(min_size=2 * total, max_size=2 * total)), dtype=np.uint16)
    responses = [
        [token for token in range(12) if word >> token & 1] * (1 + (word >> 12) % 2)
        for word in words.tolist()
    ]
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    ids = draw(st.lists(st.sampled_from("abc"), min_size=len(sizes), max_size=len(sizes)))
    edges = np.cumsum([0, *sizes])
    groups = [rewards[i:j].tolist() for i, j in pairwise(edges.tolist())]
    return batch_of(groups, responses, dtype, ids)


def random_batch(rng: np.random.Generator, n_groups: int, largest_group: int, continuous: bool) -> Rollouts:
    """A larger batch for comparisons with slow code written from the definitions."""
    sizes = rng.integers(1, largest_group + 1, n_groups)
    total = int(sizes.sum())
    vocabulary = int(rng.integers(3, 40))
    responses = [rng.integers(0, vocabulary, rng.integers(0, 12)).tolist() for _ in range(total)]
    rewards = rng.random(total) if continuous else rng.choice(REWARDS, total)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return batch_of([rewards[a:b].tolist() for a, b in pairwise(edges.tolist())], responses)


def restricted(rollouts: Rollouts, groups: Sequence[int]) -> tuple[Rollouts, np.ndarray]:
    """The batch of the given groups, in that order, and the indices that its trajectories had."""
    spans, texts = members(rollouts), responses_of(rollouts)
    indices = [i for q in groups for i in spans[q]]
    smaller = batch_of(
        [[float(rollouts.rewards[i]) for i in spans[q]] for q in groups],
        [texts[i] for i in indices],
        rollouts.rewards.dtype.type,
        [rollouts.question_ids[q] for q in groups],
    )
    return smaller, np.array(indices, dtype=np.int64)
