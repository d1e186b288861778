"""What runs inside EasyR1's workers, by `execute_with_func_generator`; no worker class is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from verl.protocol import DataProto


def rank_call(ranks: int, **meta: Any) -> DataProto:
    """What a function of this module gets on every rank: one row each, with `meta` as its `meta_info`."""
    from verl.protocol import DataProto

    return DataProto(non_tensor_batch={"rank": np.array(range(ranks), dtype=object)}, meta_info=meta)


def apply_update_plan(worker: Any, plan: DataProto) -> DataProto:
    """Size the next updates to the batch that was kept.

    plan.meta_info: `per_update`, trajectories of a rank in one update; `tokens`, response tokens of each
    update over all ranks, or None to leave the loss as EasyR1 has it.

    Images are forgotten, see `forget_images`.
    """
    forget_images(worker, plan)
    worker.actor.config.global_batch_size_per_device = int(plan.meta_info["per_update"])
    if plan.meta_info["tokens"] is not None:
        _average_sequences_exactly(worker.actor, plan.meta_info["per_update"], plan.meta_info["tokens"])
    return plan


def forget_images(worker: Any, call: DataProto) -> DataProto:
    """Empty the cache of processed images, which EasyR1 compares row by row with the batch before.

    That has another length after pruning: the comparison then fails.
    """
    worker._cache.clear()
    return call


def _average_sequences_exactly(actor: Any, per_update: int, tokens: list[int]) -> None:
    """Make a mean over sequences independent of micro-batches.

    EasyR1 multiplies a micro-batch's loss by its share of the update's tokens. A mean over sequences needs
    its share of the update's sequences; the ratio of the two goes onto what its loss functions return.
    """
    from verl.workers.actor import dp_actor

    if not hasattr(dp_actor, "_exact"):
        dp_actor._exact = _ExactMean(dp_actor)
    dp_actor._exact.start(actor, per_update, tokens)


class _ExactMean:
    """Wraps the loss functions of EasyR1's actor module, once a process, and follows the update it is in."""

    def __init__(self, module: Any) -> None:
        self._policy_loss, self._average = module.compute_policy_loss, module.average_loss
        module.compute_policy_loss, module.average_loss = self.policy_loss, self.average_loss
        self._tokens: list[int] = []
        self._sequences = 1
        self._update = 0

    def start(self, actor: Any, per_update: int, tokens: list[int]) -> None:
        self._tokens, self._update = tokens, 0
        self._sequences = per_update * actor.world_size
        if not hasattr(actor, "_step_of_easyr1"):
            actor._step_of_easyr1 = actor._optimizer_step
            actor._optimizer_step = lambda: self._step(actor)

    def policy_loss(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, dict[str, float]]:
        loss, metrics = self._policy_loss(*args, **kwargs)
        return loss * self._factor(kwargs["response_mask"]), metrics

    def average_loss(self, values: torch.Tensor, mask: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        average: torch.Tensor = self._average(values, mask, **kwargs)
        return average * self._factor(mask)

    def _factor(self, mask: torch.Tensor) -> float:
        tokens = self._tokens[self._update % len(self._tokens)]
        return len(mask) / max(float(mask.sum()), 1.0) * tokens / self._sequences

    def _step(self, actor: Any) -> torch.Tensor:
        norm: torch.Tensor = actor._step_of_easyr1()
        self._update += 1
        return norm
