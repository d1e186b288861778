"""How alike the trajectories of a group are: Jaccard similarity of their sets of response token ids."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fastrl.groups import starts_and_sizes
from fastrl.rollouts import IntArray, Rollouts

Kernel = Literal["numpy", "numba"]
"""What counts the shared tokens. Both give the same integers; "numba" is faster, and an optional extra."""

_LARGEST_TABLE = 1 << 22
"""Token ids above this are renumbered first, so that a stray id cannot ask for gigabytes."""


def kernel_problem(kernel: Kernel) -> str | None:
    """Why a kernel cannot be used here; None if it can."""
    if kernel == "numba" and importlib.util.find_spec("numba") is None:
        return (
            "kernel=numba, but the package numba is not installed; install the extra fastrl-suite[numba], or "
            "set kernel=numpy, which gives the same results"
        )
    return None


def seed_overlaps(
    rollouts: Rollouts, seed: IntArray, kernel: Kernel
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N,) |set_i ∩ set_seed(i)| and (N,) |set_i ∪ set_seed(i)|; both 0 for the seeds themselves.

    seed: (N,) for each trajectory the one it is compared with; a seed's seed is itself. Each token id is read
    once, by a table of 4 bytes per vocabulary entry that is neither sorted nor cleared; a seed without
    others is not read at all.
    """
    rollouts, vocabulary = _small_ids(rollouts)
    n = len(seed)
    shared, union = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    order = np.lexsort((np.arange(n) != seed, seed))  # class by class, the seed first
    order = order[(np.bincount(seed, minlength=n) > 1)[seed[order]]]
    starts = np.asarray(rollouts.token_starts, dtype=np.int64)
    stops = starts + rollouts.lengths
    if kernel == "numba":
        from fastrl.jaccard_numba import count_seed_overlaps

        count_seed_overlaps(rollouts.tokens, starts, stops, order, seed, vocabulary, shared, union)
        return shared, union

    # The table holds, for each token id, the position that it was last seen at: positions go on counting over
    # all trajectories, so entries of earlier ones are lower and need not be cleared.
    total = int(rollouts.token_offsets[-1])
    last_seen: IntArray = np.full(vocabulary, -1, dtype=np.int32 if total < 2**31 else np.int64)
    read, seed_tokens = 0, np.zeros(0, dtype=np.intp)
    places = zip(order.tolist(), starts[order].tolist(), stops[order].tolist(), strict=True)
    is_seed = (seed == np.arange(n)).tolist()
    for i, start, stop in places:
        held = rollouts.tokens[start:stop].astype(np.intp, copy=False)
        position = np.arange(read, read + len(held), dtype=last_seen.dtype)
        last_seen[held] = position
        distinct = last_seen[held] == position
        if is_seed[i]:
            seed_tokens = held[distinct]
        else:
            common = np.count_nonzero(last_seen[seed_tokens] >= read)
            shared[i] = common
            union[i] = np.count_nonzero(distinct) + len(seed_tokens) - common
        read += len(held)
    return shared, union


def class_intersections(rollouts: Rollouts, label: IntArray, kernel: Kernel) -> Iterator[NDArray[np.int64]]:
    """For each group its (G, G) matrix of |set_i ∩ set_j| where i and j have the same label, else any number.

    The diagonal holds the sizes of the token sets. label: (N,).
    """
    if kernel == "numpy":
        return set_intersections(rollouts)
    from fastrl.jaccard_numba import count_class_intersections

    rollouts, vocabulary = _small_ids(rollouts)
    return count_class_intersections(rollouts, np.asarray(label), vocabulary)


def set_intersections(rollouts: Rollouts) -> Iterator[NDArray[np.int64]]:
    """For each group its (G, G) matrix of |set_i ∩ set_j|; the diagonal holds the sizes of the token sets.

    Exact and symmetric, for any group size. One table over the vocabulary serves all groups: bit i of a
    token's entry says that trajectory i holds the token, so each token id is read once and all pairs follow
    from the entries that were set. Memory: vocabulary x ceil(G / 8) bytes for the largest group.
    """
    sizes = starts_and_sizes(rollouts.offsets)[1]
    rollouts, vocabulary = _small_ids(rollouts)
    starts = rollouts.token_starts
    spans = list(zip(starts.tolist(), (starts + rollouts.lengths).tolist(), strict=True))
    tables: dict[int, _MaskTable] = {}
    first = 0
    for size in sizes.tolist():
        width = _bytes_per_token(size)
        if width not in tables:
            tables[width] = _MaskTable(vocabulary, width)
        yield tables[width].intersections(rollouts.tokens, spans[first : first + size])
        first += size


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

    def intersections(self, tokens: IntArray, spans: list[tuple[int, int]]) -> NDArray[np.int64]:
        """(G, G) for the trajectories `tokens[start:stop]`; leaves the table zero again."""
        size = len(spans)
        for i, (start, stop) in enumerate(spans):
            column = self.masks[:, i // 8]
            held = tokens[start:stop].astype(np.intp, copy=False)  # numpy converts others at each use
            column[held] = column[held] | np.uint8(1 << i % 8)
        if size <= 8:
            # Few masks are possible: count how often each occurs, instead of one row per token.
            column = self.masks[:, 0]
            hit = np.flatnonzero(column != 0)
            count = np.bincount(column[hit], minlength=256).astype(np.float64)
            column[hit] = 0
            member = _MEMBERS[:, :size]
            return np.asarray((member * count[:, None]).T @ member).astype(np.int64)
        width = self.masks.shape[1]
        hit = np.flatnonzero(self.words[:, 0] != 0 if width <= 8 else self.words.any(axis=1))
        found = self.words[hit]
        self.words[hit] = 0
        masks = found.view(np.uint8).reshape(-1, width)
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


def _small_ids(rollouts: Rollouts) -> tuple[Rollouts, int]:
    """The rollouts with token ids from 0 to below the second value, renumbered if they are too large.

    ValueError on negative ids.
    """
    tokens = rollouts.tokens
    if not len(tokens):
        return rollouts, 1
    lowest, highest = int(tokens.min()), int(tokens.max())
    if lowest >= 0 and highest < _LARGEST_TABLE:
        return rollouts, highest + 1
    if rollouts.row_stride is not None:  # it may be the padding
        return _small_ids(rollouts.packed())
    if lowest < 0:
        raise ValueError(f"token id {lowest} is negative; leave padding out of the rollouts")
    distinct, numbers = np.unique(tokens, return_inverse=True)
    return dataclasses.replace(rollouts, tokens=numbers), len(distinct)
