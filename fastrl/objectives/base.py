"""What an objective is: the loss of a batch of kept trajectories, exact under any micro-batch partition.

The modules of this package use tensor methods alone: importing them (to check a configuration, say) needs no
torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fastrl.rollouts import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LossInputs:
    """One micro-batch of B kept trajectories, right-padded to L response tokens.

    logp: (B, L) float32 with gradient. old_logp: (B, L) float32. ref_logp: (B, L) float32, or None when the
    objective has no KL term. mask: (B, L) float32, 1 on response tokens; a row may be empty. advantages: (B,)
    float32, weights already applied; `GspoToken` also takes (B, L).
    """

    logp: Tensor
    old_logp: Tensor
    ref_logp: Tensor | None
    mask: Tensor
    advantages: Tensor


@dataclass(frozen=True)
class UpdateSize:
    """Totals of the whole update (optimizer step) that a micro-batch belongs to, so that means are exact.

    A caller that normalises by the trajectories sampled instead of those kept gives the totals of the former.
    """

    sequences: int
    tokens: int


@dataclass(frozen=True)
class LossOutputs:
    """loss: this micro-batch's additive share of the update's loss, a scalar with gradient.

    For logging, scalars without gradient: `clipped_tokens`, the tokens whose gradient the clip cuts off, and
    `kl_sum`, the sum over tokens of the k3 estimate of the KL to the reference (0 without a KL term).
    """

    loss: Tensor
    clipped_tokens: Tensor
    kl_sum: Tensor


class Objective(Protocol):
    """A frozen dataclass of settings. Registered in `fastrl.objectives.OBJECTIVES`."""

    @property
    def needs_reference(self) -> bool:
        """True when the loss has a KL term towards the reference policy."""
        ...

    def advantages(self, rewards: FloatArray, offsets: IntArray) -> FloatArray:
        """(N,) advantages of the full groups; exactly 0 in a group of constant reward."""
        ...

    def loss(self, inputs: LossInputs, size: UpdateSize) -> LossOutputs:
        """The negative objective's share of one micro-batch; shares of an update add up to its loss."""
        ...


@runtime_checkable
class ShapesRewards(Protocol):
    """What an objective may offer besides: rewards that depend on how long the responses are."""

    def shaped_rewards(self, rewards: FloatArray, lengths: IntArray) -> FloatArray:
        """(N,) the rewards to train on, from those of the reward function (N,) and response tokens (N,)."""
        ...
