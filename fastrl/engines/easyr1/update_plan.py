"""How many optimizer steps the kept trajectories make, and what every rank is told of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastrl.engines.easyr1.settings import EasyR1Settings
from fastrl.engines.easyr1.worker_hooks import rank_call

if TYPE_CHECKING:
    import torch
    from verl.protocol import DataProto


@dataclass(frozen=True)
class UpdatePlan:
    """Sizes of a step's updates.

    mode, updates: "fixed" makes so many updates of whatever is kept, "mini_batch" one of every `mini_batch`
    that are kept. mini_batch: trajectories of an update over all ranks when none is pruned. ranks: workers of
    one share of the data each. rank_multiple: the trajectories of a rank come in multiples of this, see
    `rank_multiple`. exact_sequence_mean: see `EasyR1Settings`.
    """

    mode: str
    updates: int
    mini_batch: int
    ranks: int
    rank_multiple: int
    exact_sequence_mean: bool

    def divisor(self) -> int:
        """What the number of kept trajectories is aligned to a multiple of."""
        smallest = self.ranks * self.rank_multiple
        return smallest if self.mode == "fixed" else math.lcm(smallest, self.mini_batch)

    def updates_of(self, kept: int) -> int:
        """Optimizer steps that a number of kept trajectories makes."""
        return self.updates if self.mode == "fixed" else kept // self.mini_batch

    def for_ranks(self, response_mask: torch.Tensor) -> DataProto:
        """What `worker_hooks.apply_update_plan` takes, one row a rank.

        response_mask: (N, L) of the kept trajectories, in the order in which they are dealt out to the ranks.
        """
        updates = self.updates_of(len(response_mask))
        per_update = len(response_mask) // (self.ranks * updates)
        tokens = None
        if self.exact_sequence_mean:
            lengths = response_mask.sum(-1).view(self.ranks, updates, per_update)
            tokens = lengths.sum(dim=(0, 2)).tolist()
        return rank_call(self.ranks, per_update=per_update, tokens=tokens)


def rank_multiple(engine: EasyR1Settings, mode: str, updates: int) -> int:
    """What the number of a rank's trajectories must be a multiple of, for EasyR1 to split it evenly.

    A fixed number of updates, each of whole micro-batches where these have a fixed size; and whole
    micro-batches of old and reference log-probs too.
    """
    micro_batch = 1 if engine.dynamic_batching else engine.micro_batch_update
    whole = micro_batch * updates if mode == "fixed" else micro_batch
    return whole if engine.dynamic_batching else math.lcm(whole, engine.micro_batch_experience)
