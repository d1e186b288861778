"""AdamW in float32 whatever the dtype of the policy, with gradient accumulation and clipping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class PolicyOptimizer:
    """Updates a model's parameters, but for those that need no gradient: a frozen vision tower's.

    A float32 model is updated in place. For a model of lower precision, float32 master weights are updated
    and rounded into the model: steps of a small learning rate would be lost to rounding otherwise. A
    checkpoint takes `masters` and `state`.
    """

    def __init__(
        self, model: Any, learning_rate: float, betas: tuple[float, float], weight_decay: float
    ) -> None:
        self._parameters: dict[str, Tensor] = {
            name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
        }
        self.masters: dict[str, Tensor] = {
            name: parameter
            if parameter.dtype == torch.float32
            else parameter.detach().float().requires_grad_(True)
            for name, parameter in self._parameters.items()
        }
        self._learning_rate = learning_rate
        self._adamw = torch.optim.AdamW(
            list(self.masters.values()), lr=learning_rate, betas=betas, weight_decay=weight_decay, fused=True
        )

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a micro-batch's share of the loss."""
        loss.backward()  # type: ignore[no-untyped-call]
        for name, master in self.masters.items():
            parameter = self._parameters[name]
            if master is parameter or parameter.grad is None:
                continue
            gradient = parameter.grad.float()
            master.grad = gradient if master.grad is None else master.grad.add_(gradient)
            parameter.grad = None

    def step(self, scale: float, max_norm: float) -> Tensor:
        """Update with `scale` times the learning rate; returns the gradient's norm before clipping.

        A gradient that is not finite changes nothing; the caller sees it in the norm.
        """
        for group in self._adamw.param_groups:
            group["lr"] = self._learning_rate * scale
        norm = torch.nn.utils.clip_grad_norm_(self.masters.values(), max_norm)
        if torch.isfinite(norm):
            self._adamw.step()
            self._publish()
        self._adamw.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Any]:
        return self._adamw.state_dict()

    @torch.no_grad()
    def restore(self, masters: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Take over the weights and AdamW state of a checkpoint; KeyError if a parameter is missing."""
        for name, master in self.masters.items():
            master.copy_(masters[name])
        self._adamw.load_state_dict(state)
        self._publish()

    @torch.no_grad()
    def _publish(self) -> None:
        for name, master in self.masters.items():
            if master is not self._parameters[name]:
                self._parameters[name].copy_(master)
