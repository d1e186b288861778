"""EasyR1's advantages of the full groups, which the trajectories that are kept of them go on with.

`fit` computes advantages again, on whatever is left of a group: the estimator that this module registers
hands it the values that were computed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from verl.trainer import core_algos

from fastrl.advantages import zero_variance
from fastrl.engines.easyr1.group_batch import GroupedBatch

if TYPE_CHECKING:
    from verl.protocol import DataProto

KEPT_ADVANTAGES = "reward_baselines"
"""The column of a batch that carries them; EasyR1 forwards one of this name to its estimators."""

_EASYR1 = core_algos.ADV_ESTIMATOR_MAP["grpo"]


def full_advantages(batch: DataProto, groups: GroupedBatch, zero_constant_groups: bool) -> torch.Tensor:
    """(N, L) float32 advantages by EasyR1's own estimator, of a batch whose groups are whole.

    zero_constant_groups: groups of one reward get exactly 0, not what rounding makes of it.
    """
    advantages: torch.Tensor = _EASYR1(
        token_level_rewards=batch.batch["token_level_scores"],
        response_mask=batch.batch["response_mask"],
        index=batch.non_tensor_batch["uid"],
    )[0]
    if zero_constant_groups:
        constant = zero_variance(groups.rollouts.rewards, groups.rollouts.offsets)
        advantages[torch.from_numpy(groups.rows[constant[groups.rollouts.group_of]])] = 0.0
    return advantages


def _kept_advantages(**inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """In place of EasyR1's estimator of this name, which a batch without the column still gets."""
    kept = inputs.pop(KEPT_ADVANTAGES, None)
    if kept is not None:
        return kept, kept
    advantages: tuple[torch.Tensor, torch.Tensor] = _EASYR1(**inputs)
    return advantages


core_algos.register_adv_estimator("grpo")(_kept_advantages)
