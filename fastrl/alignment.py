"""From a selector's choice to optimizer steps: back-filling to a divisor, and even splits into updates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fastrl.groups import rank_within
from fastrl.rollouts import FloatArray, IntArray
from fastrl.selectors.base import Selection

OnShortage = Literal["error", "trim"]
DivisorMode = Literal["mini_batch", "data_parallel"]


class AlignmentError(ValueError):
    """The kept trajectories cannot be brought to a multiple of the divisor."""


@dataclass(frozen=True)
class Alignment:
    """The trajectories that train the policy, their number a multiple of the divisor.

    kept: (K,) int64 ascending, the selector's choice with `added` and without `trimmed`.
    added: int64, back-filled trajectories in the order they were added. trimmed: int64 ascending.
    """

    kept: NDArray[np.int64]
    added: NDArray[np.int64]
    trimmed: NDArray[np.int64]


def align(
    kept: IntArray, offsets: IntArray, priority: FloatArray, divisor: int, on_shortage: OnShortage
) -> Alignment:
    """Back-fill `kept` until its number is a multiple of `divisor`.

    Round-robin over the groups in their order, each time the unselected trajectory of highest `priority` (N,)
    (ties: lowest index); a priority of -inf is never added. Adds fewer than `divisor`. When the candidates do
    not suffice, `on_shortage="error"` raises AlignmentError, and "trim" adds nothing and drops the surplus
    over the last multiple instead: lowest priority first (ties: highest index), and a group's last kept
    trajectory only when no other is left. AlignmentError, too, when trimming would leave nothing.
    """
    if divisor < 1:
        raise AlignmentError(f"the divisor must be at least 1, got {divisor}")
    chosen = np.sort(np.asarray(kept, dtype=np.int64))
    nothing = np.zeros(0, dtype=np.int64)
    missing = -len(chosen) % divisor
    if not missing:
        return Alignment(chosen, nothing, nothing)

    priority = np.asarray(priority, dtype=np.float64)
    free = priority > -np.inf
    free[chosen] = False
    candidates = np.flatnonzero(free)
    if len(candidates) >= missing:
        group = np.searchsorted(offsets, candidates, side="right") - 1
        turn = rank_within(group, -priority[candidates])
        added = candidates[np.lexsort((group, turn))[:missing]]
        return Alignment(np.sort(np.concatenate([chosen, added])), added, nothing)

    surplus = len(chosen) % divisor
    if on_shortage == "error" or surplus == len(chosen):
        raise AlignmentError(
            f"{len(chosen)} kept trajectories need {missing} more for a multiple of {divisor}, and only "
            f"{len(candidates)} unselected ones are left; use a smaller divisor (mini-batch or updates)"
            + (', or on_shortage="trim" to drop the surplus' if surplus < len(chosen) else "")
        )
    group = np.searchsorted(offsets, chosen, side="right") - 1
    best = rank_within(group, -priority[chosen]) == 0
    trimmed = np.sort(chosen[np.lexsort((-chosen, priority[chosen], best))[:surplus]])
    return Alignment(np.setdiff1d(chosen, trimmed, assume_unique=True), nothing, trimmed)


def aligned_advantages(selection: Selection, alignment: Alignment, advantages: FloatArray) -> FloatArray:
    """(K,) the advantages of `alignment.kept`, after the selector's override and weights.

    Without either, the values are those of the full group, bit for bit; back-filled trajectories always have
    theirs, with weight 1.
    """
    values = np.array(advantages)
    if selection.advantage_override is not None:
        values[selection.kept] = selection.advantage_override
    if selection.weight is not None:
        values[selection.kept] *= selection.weight
    return values[alignment.kept]


def divisor_for(
    mode: DivisorMode, *, mini_batch_questions: int, initial_rollouts: int, data_parallel: int, updates: int
) -> int:
    """The number that kept trajectories are aligned to a multiple of.

    "mini_batch": `mini_batch_questions * initial_rollouts` trajectories an update (FastRL's main runs), so
    that pruning lowers the number of updates. "data_parallel": `data_parallel * updates`, a fixed number of
    updates of any size. AlignmentError if a mini-batch does not divide evenly over the data-parallel ranks.
    """
    if mode == "data_parallel":
        return data_parallel * updates
    size = mini_batch_questions * initial_rollouts
    if size % data_parallel:
        raise AlignmentError(
            f"a mini-batch of {mini_batch_questions} questions x {initial_rollouts} rollouts = {size} "
            f"trajectories does not divide over {data_parallel} data-parallel ranks; use a multiple of it"
        )
    return size


def split_updates(n: int, updates: int) -> list[slice]:
    """Cut n trajectories into `updates` consecutive parts that differ by at most one; never an empty part,
    so fewer parts when n < updates."""
    if n < 0 or updates < 1:
        raise ValueError(
            f"cannot split {n} trajectories into {updates} updates; at least one update is needed"
        )
    parts = min(n, updates)
    small, larger = divmod(n, max(parts, 1))
    edges = [part * small + min(part, larger) for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def split_mini_batches(n: int, size: int) -> list[slice]:
    """Cut n trajectories into consecutive mini-batches of exactly `size`; AlignmentError if some are left."""
    if size < 1 or n % size:
        raise AlignmentError(
            f"{n} trajectories are no multiple of the mini-batch of {size}; align them first"
        )
    return [slice(start, start + size) for start in range(0, n, size)]
