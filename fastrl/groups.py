"""Ragged groups: group q owns the consecutive items `offsets[q]:offsets[q + 1]`, at least one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastrl.rollouts import FloatArray, IntArray


def starts_and_sizes(offsets: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(Q,) first item and (Q,) number of items of each group; ValueError if a group is empty."""
    edges = np.asarray(offsets, dtype=np.int64)
    sizes = np.diff(edges)
    if (sizes < 1).any():
        empty = int(np.flatnonzero(sizes < 1)[0])
        raise ValueError(f"group {empty} holds no trajectory; leave such groups out of the offsets")
    return edges[:-1], sizes


def group_index(offsets: IntArray) -> NDArray[np.int64]:
    """(N,) the group of each item."""
    starts, sizes = starts_and_sizes(offsets)
    return np.repeat(np.arange(len(starts)), sizes)


def rank_within(group: IntArray, *keys: FloatArray | IntArray) -> NDArray[np.int64]:
    """(M,) each item's place, from 0, among the items of equal `group`: by ascending first key, ties by the
    next key, in the end by position. `group` (M,) are any integers, in any order."""
    order = np.lexsort((*reversed(keys), group))
    ordered = group[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    first = np.flatnonzero(new)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return rank


def check_finite(
    values: FloatArray, offsets: IntArray, what: str, question_ids: Sequence[str] | None = None
) -> None:
    """Raise ValueError if one of `values` (N,) is NaN or infinite, naming the questions, or the group numbers
    if there are no ids. `what` names the values, as in "rewards"."""
    broken = ~np.isfinite(values)
    if not broken.any():
        return
    groups = np.unique(np.searchsorted(offsets, np.flatnonzero(broken), side="right") - 1)
    names = [f"group {q}" if question_ids is None else f"question {question_ids[q]!r}" for q in groups[:5]]
    more = f" and {len(groups) - 5} more" if len(groups) > 5 else ""
    raise ValueError(
        f"{int(broken.sum())} of {len(values)} {what} are NaN or infinite, in {', '.join(names)}{more}; "
        "the reward function must return finite numbers"
    )
