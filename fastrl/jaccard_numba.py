"""The counts of `fastrl.jaccard` compiled by numba (the extra `numba`); imported only where it was asked for.

One table over the vocabulary, int32, serves a whole batch: each reading of a trajectory has its own number,
entries of earlier readings are lower, and so nothing is cleared or sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fastrl.rollouts import IntArray, Rollouts


def count_seed_overlaps(
    tokens: IntArray,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    order: NDArray[np.int64],
    seed: IntArray,
    vocabulary: int,
    shared: NDArray[np.int64],
    union: NDArray[np.int64],
) -> None:
    """Fill `shared` and `union` (N,), as `fastrl.jaccard.seed_overlaps` describes them.

    order: trajectories, each seed right before those that are compared with it.
    """
    table = np.full(vocabulary, -1, dtype=np.int32)
    _compiled_seed_overlaps(tokens, starts, stops, order, seed, table, shared, union)


def count_class_intersections(
    rollouts: Rollouts, label: IntArray, vocabulary: int
) -> Iterator[NDArray[np.int64]]:
    """For each group its (G, G) intersections of token sets, 0 between different labels (N,)."""
    table = np.full(vocabulary, -1, dtype=np.int32)
    starts = np.asarray(rollouts.token_starts, dtype=np.int64)
    stops = starts + rollouts.lengths
    edges = rollouts.offsets.tolist()
    reading = 0
    for first, last in pairwise(edges):
        if reading > 2**30:
            table.fill(-1)
            reading = 0
        part = slice(first, last)
        shared, reading = _compiled_intersections(
            rollouts.tokens, starts[part], stops[part], label[part], table, reading
        )
        yield shared


def _seed_overlaps(
    tokens: Any, starts: Any, stops: Any, order: Any, seed: Any, table: Any, shared: Any, union: Any
) -> None:
    # Reading number r writes 2r, or 2r + 1 where the token is one of the present seed's. Whether a token is
    # new is as good as random, so the counts are added up without branches.
    reading, seed_reading, seed_size = 0, 0, 0
    for i in order:
        reading += 2
        size, common = 0, 0
        held = tokens[starts[i] : stops[i]]
        if seed[i] == i:
            for token in held:
                size += table[np.uint64(token)] != reading + 1
                table[np.uint64(token)] = reading + 1
            seed_reading, seed_size = reading, size
        else:
            for token in held:
                entry = table[np.uint64(token)]
                new = entry < reading
                in_seed = (entry > seed_reading) & (entry & 1)
                size += new
                common += new & in_seed
                table[np.uint64(token)] = reading + in_seed
            shared[i] = common
            union[i] = size + seed_size - common


def _intersections(tokens: Any, starts: Any, stops: Any, label: Any, table: Any, reading: int) -> Any:
    size = len(label)
    shared = np.zeros((size, size), dtype=np.int64)
    # A reference's reading writes its number; where another trajectory holds the token, too, the entry is
    # raised to that trajectory's own number, so that it counts once for each. The next reference starts above
    # them all.
    for i in range(size):
        count = 0
        for token in tokens[starts[i] : stops[i]]:
            count += table[np.uint64(token)] != reading
            table[np.uint64(token)] = reading
        shared[i, i] = count
        seen = reading
        for j in range(i + 1, size):
            if label[j] == label[i]:
                seen += 1
                count = 0
                for token in tokens[starts[j] : stops[j]]:
                    entry = table[np.uint64(token)]
                    common = (reading <= entry) & (entry < seen)
                    count += common
                    table[np.uint64(token)] = seen if common else entry
                shared[i, j] = count
                shared[j, i] = count
        reading = seen + 1
    return shared, reading


_compiled_seed_overlaps = numba.njit(_seed_overlaps, nogil=True)
_compiled_intersections = numba.njit(_intersections, nogil=True)
