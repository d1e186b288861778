"""How alike the trajectories of a group are: Jaccard similarity of their sets of response token ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fastrl.groups import starts_and_sizes
from fastrl.rollouts import IntArray, Rollouts

_LARGEST_TABLE = 1 << 22
"""Token ids above this are renumbered first, so that a stray id cannot ask for gigabytes."""


def set_intersections(rollouts: Rollouts) -> Iterator[NDArray[np.int64]]:
    """For each group its (G, G) matrix of |set_i ∩ set_j|; the diagonal holds the sizes of the token sets.

    Exact and symmetric, for any group size. One table over the vocabulary serves all groups: bit i of a
    token's entry says that trajectory i holds the token, so each token id is read once and all pairs follow
    from the entries that were set. Memory: vocabulary x ceil(G / 8) bytes for the largest group.
    """
    starts, sizes = starts_and_sizes(rollouts.offsets)
    tokens = _small_ids(rollouts.tokens)
    bounds = rollouts.token_offsets.tolist()
    tables: dict[int, _MaskTable] = {}
    vocabulary = int(tokens.max()) + 1 if len(tokens) else 1
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        width = _bytes_per_token(size)
        if width not in tables:
            tables[width] = _MaskTable(vocabulary, width)
        edges = bounds[start : start + size + 1]
        yield tables[width].intersections(tokens, edges)


def jaccard_matrices(rollouts: Rollouts) -> Iterator[NDArray[np.float64]]:
    """For each group its (G, G) Jaccard similarities in [0, 1]; two empty responses are alike (1)."""
    for intersection in set_intersections(rollouts):
        union = set_unions(intersection)
        yield np.where(union > 0, intersection / np.maximum(union, 1), 1.0)


def set_unions(intersection: NDArray[np.int64]) -> NDArray[np.int64]:
    """(G, G) |set_i ∪ set_j| of a group from its intersections."""
    size = np.diagonal(intersection)
    return size[:, None] + size - intersection


class _MaskTable:
    """For each token id a bit mask of the trajectories of one group that hold it; all zero between groups."""

    def __init__(self, vocabulary: int, width: int) -> None:
        rows = -(-vocabulary // 8) * 8
        self.masks = np.zeros((rows, width), dtype=np.uint8)
        words_per_row = max(width // 8, 1)
        self.words = self.masks.reshape(-1).view(np.uint64).reshape(-1, words_per_row)

    def intersections(self, tokens: NDArray[np.intp], edges: list[int]) -> NDArray[np.int64]:
        """(G, G) for the trajectories `tokens[edges[i]:edges[i + 1]]`; leaves the table zero again."""
        size = len(edges) - 1
        for i in range(size):
            column = self.masks[:, i // 8]
            held = tokens[edges[i] : edges[i + 1]]
            column[held] = column[held] | np.uint8(1 << i % 8)
        width = self.masks.shape[1]
        hit = np.flatnonzero(self.words[:, 0] != 0 if width <= 8 else self.words.any(axis=1))
        found = self.words[hit]
        self.words[hit] = 0
        masks = found.view(np.uint8).reshape(-1, width)
        if size <= 8:
            # Few masks are possible: count how often each occurs, instead of one row per token.
            count = np.bincount(masks[:, 0], minlength=256).astype(np.float64)
            member = _MEMBERS[:, :size]
            return np.asarray((member * count[:, None]).T @ member).astype(np.int64)
        if width < 8:  # a word holds several tokens, and not each of them was hit
            masks = masks[found.view(f"u{width}").reshape(-1) != 0]
        member = np.unpackbits(masks, axis=1, count=size, bitorder="little").astype(np.float32)
        return np.asarray(member.T @ member).astype(np.int64)


_MEMBERS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(
    np.float64
)
"""(256, 8): which trajectories each mask of eight bits holds."""


def _bytes_per_token(size: int) -> int:
    """Bytes of a mask for `size` trajectories, so that masks fill 64-bit words or words fill masks."""
    needed = -(-size // 8)
    return next((width for width in (1, 2, 4, 8) if width >= needed), -(-needed // 8) * 8)


def _small_ids(tokens: IntArray) -> NDArray[np.intp]:
    if len(tokens) and tokens.min() < 0:
        raise ValueError(f"token id {int(tokens.min())} is negative; leave padding out of the rollouts")
    if len(tokens) and tokens.max() >= _LARGEST_TABLE:
        return np.unique(tokens, return_inverse=True)[1]
    return tokens.astype(np.intp, copy=False)  # numpy converts other indices at each use
