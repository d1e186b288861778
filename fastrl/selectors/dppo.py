"""DPPO: prune low advantages at random, and weight what is left so that the gradient stays unbiased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastrl.groups import group_index, starts_and_sizes
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class Dppo:
    """Dynamic pruning policy optimization (arXiv 2603.04135), its pruning of trajectories.

    A trajectory whose |A| is below the mean |A| of its group is pruned with probability `pruning_rate`, the
    others never, so that every group keeps one. A kept one weighs 1 / (its probability of being kept). The
    loss is a mean over the kept; the weights hold the factor kept / sampled that turns it into one over the
    sampled, so the expected policy gradient of a step's single update is that of the full batch. The KL term
    has no weights.

    pruning_rate: in [0, 1). epsilon: |A| counts as below the mean from this gap on.
    mean_over: what the objective averages over: "sequences" (GRPO, Dr.GRPO, GSPO) or "tokens" (DAPO).

    The paper also prunes whole questions by their history; here that is a prompt filter's work. Alignment
    adds no pruned trajectory (its weight is not defined); where it trims, the bias is that of the trimmed.
    """

    pruning_rate: float
    epsilon: float
    mean_over: Literal["sequences", "tokens"]

    def __post_init__(self) -> None:
        if not 0 <= self.pruning_rate < 1:
            raise ValueError(f"pruning_rate={self.pruning_rate}; a probability in [0, 1) is needed")
        if not self.epsilon > 0:
            raise ValueError(
                f"epsilon={self.epsilon}; equal |advantages| may be off their mean by rounding, so it must "
                "be above 0"
            )

    def problem_with(self, n: int) -> str | None:
        return None

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        size = np.abs(np.asarray(advantages, dtype=np.float64))
        starts, sizes = starts_and_sizes(rollouts.offsets)
        mean = np.add.reduceat(size, starts) / sizes if len(starts) else np.zeros(0)
        at_risk = size < mean[group_index(rollouts.offsets)] - self.epsilon
        pruned = at_risk & (rng.random(len(size)) < self.pruning_rate)
        kept = np.flatnonzero(~pruned)
        amount = np.ones(len(size)) if self.mean_over == "sequences" else np.asarray(rollouts.lengths, float)
        share = amount[kept].sum() / max(amount.sum(), 1.0)
        weight = share * np.where(at_risk[kept], 1 / (1 - self.pruning_rate), 1.0)
        return Selection(
            kept,
            np.where(pruned, -np.inf, size),
            tuple(np.where(pruned, "random", "").tolist()),
            weight=weight,
        )
