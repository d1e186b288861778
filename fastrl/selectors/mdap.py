"""MDAP, FastRL's selection: of trajectories with equal advantage, keep those that differ in their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fastrl.advantages import advantage_classes, zero_variance
from fastrl.groups import group_index, rank_within
from fastrl.jaccard import Kernel, class_intersections, kernel_problem, seed_overlaps, set_unions
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class Mdap:
    """FastRL section 3 (MDAP), per group and class of equal advantage.

    The class's trajectory of largest |advantage| (ties: lowest index), its seed, is kept. A later one is kept
    if its differential 1 - J is large enough, J being the Jaccard similarity of the sets of response tokens.

    tau: threshold of the differential in [0, 1]. 0 keeps all, also exact duplicates; 1 keeps the seeds alone.
    compare: "retained" keeps a trajectory whose differential to every one kept before it in its class is at
        least tau (the paper's text). "seed" compares with the seed alone and keeps for J < 1 - tau (the
        authors' code), so a differential of exactly tau is pruned. Both are decided in integers, free of
        rounding.
    epsilon: advantages closer than this are equal.
    weight: "cluster_size" multiplies the advantage of a kept trajectory by the number of trajectories that
        it stands for: itself and those pruned; with "retained" the most similar kept one stands for a pruned
        one. "none" leaves the advantages as they are.
    drop_zero_variance: drop groups of constant reward, whose advantage is 0, instead of keeping one or more.
    kernel: "numpy", or "numba" where that extra is installed, which is faster; the results are the same, so
        it is not part of a run's identity.
    """

    tau: float
    compare: Literal["seed", "retained"]
    epsilon: float
    weight: Literal["none", "cluster_size"]
    drop_zero_variance: bool
    kernel: Kernel

    def __post_init__(self) -> None:
        if not 0 <= self.tau <= 1:
            raise ValueError(f"tau={self.tau}; a threshold in [0, 1] is needed")
        if not self.epsilon > 0:
            raise ValueError(
                f"epsilon={self.epsilon}; advantages closer than it are equal, so it must be above 0"
            )
        if problem := kernel_problem(self.kernel):
            raise ValueError(problem)

    def problem_with(self, n: int) -> str | None:
        return None

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        size = np.abs(advantages)
        group = group_index(rollouts.offsets)
        classes = advantage_classes(advantages, rollouts.offsets, self.epsilon)
        label = group * len(classes) + classes
        rank = rank_within(label, -size)
        representative = self._representatives(rollouts, label, rank)
        kept = representative == np.arange(len(representative))

        reason = np.where(kept, "", "jaccard").astype(object)
        if self.drop_zero_variance:
            constant = zero_variance(rollouts.rewards, rollouts.offsets)[group]
            kept &= ~constant
            reason[constant] = "zero_variance"
            size = np.where(constant, -np.inf, size)
        weight = None
        if self.weight == "cluster_size":
            weight = np.bincount(representative, minlength=len(kept))[kept].astype(np.float64)
        return Selection(np.flatnonzero(kept), size, tuple(reason.tolist()), weight)

    def _representatives(
        self, rollouts: Rollouts, label: NDArray[np.int64], rank: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """(N,) for each trajectory the kept one that stands for it; itself where it is kept.

        label: (N,) the class, distinct over the batch. rank: (N,) the place in the class's order, the seed's
        is 0.
        """
        everyone = np.arange(len(label))
        if self.tau == 0:
            return everyone
        seeds = np.flatnonzero(rank == 0)
        _, class_number = np.unique(label, return_inverse=True)
        seed = seeds[np.argsort(label[seeds])][class_number]
        if self.tau == 1:
            return seed
        # As the decimal it was written as, so that tau = 0.8 meets 4 differing tokens of 5 exactly.
        tau = Fraction(repr(self.tau)).limit_denominator(10**9)
        if self.compare == "retained":
            representative = everyone.copy()
            groups = zip(
                rollouts.offsets[:-1].tolist(), class_intersections(rollouts, label, self.kernel), strict=True
            )
            for start, shared in groups:
                members = slice(start, start + len(shared))
                representative[members] = start + _greedy(tau, shared, label[members], rank[members])
            return representative
        shared, union = seed_overlaps(rollouts, seed, self.kernel)
        far = (union - shared) * tau.denominator > union * tau.numerator
        return np.where(far, everyone, seed)


def _greedy(
    tau: Fraction, shared: NDArray[np.int64], label: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(G,) representatives inside one group for `compare="retained"`; `shared` is its set intersections."""
    union = set_unions(shared)
    far = ((union - shared) * tau.denominator >= union * tau.numerator) & (union > 0)
    same = label[:, None] == label
    # Sets of trajectories as integers: bit j of conflicts[i] says that j, if kept, prunes i.
    conflicts = [
        int.from_bytes(row.tobytes(), "little") for row in np.packbits(same & ~far, axis=1, bitorder="little")
    ]
    kept_set = 0
    for i in np.argsort(rank, kind="stable").tolist():
        if not conflicts[i] & kept_set:
            kept_set |= 1 << i
    kept = np.array([kept_set >> i & 1 for i in range(len(label))], dtype=bool)
    similarity = np.where(same & kept, shared / np.maximum(union, 1), -1.0)
    return np.where(kept, np.arange(len(label)), np.argmax(similarity, axis=1))
