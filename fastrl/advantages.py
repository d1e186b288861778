"""Group-relative advantages, and the classes of equal advantage inside a group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastrl.groups import check_finite, group_index, starts_and_sizes
from fastrl.rollouts import BoolArray, FloatArray, IntArray


def group_advantages(
    rewards: FloatArray,
    offsets: IntArray,
    std_normalise: bool,
    epsilon: float,
    question_ids: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Advantages (N,) float64 of the rewards (N,) against the mean of their group.

    `std_normalise` divides by the sample standard deviation (n - 1) plus `epsilon`, as GRPO in EasyR1
    (core_algos.py); without it this is Dr.GRPO's difference to the mean and `epsilon` has no effect. A group
    of constant reward, so also a group of one, gets exactly 0, whatever its size or the dtype: rounding in
    the mean would otherwise be blown up by the division. ValueError on NaN or infinite rewards, naming the
    questions.
    """
    check_finite(rewards, offsets, "rewards", question_ids)
    values = np.asarray(rewards, dtype=np.float64)
    starts, sizes = starts_and_sizes(offsets)
    if not len(starts):
        return np.zeros(0)
    advantages = values - np.repeat(np.add.reduceat(values, starts) / sizes, sizes)
    if std_normalise:
        variance = np.add.reduceat(advantages**2, starts) / np.maximum(sizes - 1, 1)
        advantages /= np.repeat(np.sqrt(variance) + epsilon, sizes)
    advantages[np.repeat(zero_variance(values, offsets), sizes)] = 0.0
    return advantages


def subset_advantages(
    rewards: FloatArray, offsets: IntArray, kept: IntArray, std_normalise: bool, epsilon: float
) -> NDArray[np.float64]:
    """(K,) the advantages of the kept trajectories (ascending indices) against the kept of their group alone.

    Groups of which nothing is kept are passed over; the rest is `group_advantages`.
    """
    counts = np.bincount(group_index(offsets)[kept], minlength=max(len(offsets) - 1, 0))
    edges = np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64)
    return group_advantages(np.asarray(rewards)[kept], edges, std_normalise, epsilon)


def zero_variance(values: FloatArray, offsets: IntArray) -> BoolArray:
    """(Q,) True where all values (rewards or accuracies) of a group are equal.

    Found on the values themselves, not on advantages, which may be off 0 by rounding.
    """
    starts, _ = starts_and_sizes(offsets)
    if not len(starts):
        return np.zeros(0, dtype=bool)
    return np.asarray(np.maximum.reduceat(values, starts) == np.minimum.reduceat(values, starts))


def advantage_classes(values: FloatArray, offsets: IntArray, epsilon: float) -> NDArray[np.int64]:
    """(N,) the class of each value inside its group, numbered from 0 by ascending value.

    The values of a group are sorted; a class ends where the gap to its *first* member reaches `epsilon` (>
    0). So a class is narrower than `epsilon`, and the order of the trajectories has no influence. Rounding to
    decimals would split near neighbours instead, and linking neighbours would let a chain of small gaps grow
    without end.
    """
    if not epsilon > 0:
        raise ValueError(
            f"epsilon must be above 0, got {epsilon}; a class holds the values closer than epsilon"
        )
    starts, sizes = starts_and_sizes(offsets)
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((values, group_index(offsets)))
    ordered = np.asarray(values, dtype=np.float64)[order]
    first = np.zeros(len(ordered), dtype=bool)
    first[1:] = np.diff(ordered) >= epsilon
    first[starts] = True
    # A wide gap between neighbours always separates; a longer run of small gaps is cut at one place per pass.
    while True:
        run = np.cumsum(first) - 1
        too_wide = np.flatnonzero(ordered - ordered[first][run] >= epsilon)
        if not len(too_wide):
            break
        _, cut = np.unique(run[too_wide], return_index=True)
        first[too_wide[cut]] = True
    classes = np.empty(len(ordered), dtype=np.int64)
    classes[order] = run - np.repeat(run[starts], sizes)
    return classes
