"""Incremental decoding of any Hugging Face causal language model through its own KV cache."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

from fastrl.engines.reference.image_prompts import PlacedPrompts
from fastrl.engines.reference.policy_error import PolicyError


class Decoder(Protocol):
    """Logits of the next token for a batch of sequences that grow by one token at a time.

    Order of calls: `prefill`, then `repeat`, then any mix of `select` and `step`.
    """

    def prefill(self, ids: Tensor, mask: Tensor, images: PlacedPrompts | None = None) -> Tensor:
        """Read left-padded prompts (B, P) with their mask; returns logits (B, V) after the last column.

        images: what an image-text model reads besides, of the same prompts in the same columns.
        """
        ...

    def repeat(self, n: int) -> None:
        """Continue every sequence n times: row b becomes rows n*b ... n*b + n - 1."""
        ...

    def select(self, rows: Tensor) -> None:
        """Go on with these rows alone, in this order."""
        ...

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token (N,) to each sequence; returns logits (N, V) after it."""
        ...


class CachedDecoder:
    """A `Decoder` over the model's own forward pass and transformers' dynamic cache.

    `prefill` raises PolicyError for a model that keeps anything but keys and values.
    """

    def __init__(self, model: Any, max_tokens: int) -> None:
        del max_tokens  # the dynamic cache grows as needed
        self._model = model
        names = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._takes_positions = "position_ids" in names
        self._keep_last = {"logits_to_keep": 1} if "logits_to_keep" in names else {}

    def prefill(self, ids: Tensor, mask: Tensor, images: PlacedPrompts | None = None) -> Tensor:
        self._cache = DynamicCache(config=self._model.config)
        for layer in self._cache.layers:
            if not hasattr(layer, "batch_repeat_interleave"):  # such as a linear attention's running sum
                raise PolicyError(
                    f"{type(self._model).__name__} keeps a {type(layer).__name__} of what it has read, which "
                    "cannot be shared by the responses to a prompt; train it with engine=easyr1"
                )
        self._mask = mask
        if images is None:
            self._next = mask.sum(1)
            return self._forward(ids, (mask.cumsum(1) - 1).clamp(min=0))
        self._next = images.next_positions
        return self._forward(ids, images.positions, **images.forward_arguments())

    def repeat(self, n: int) -> None:
        self._cache.batch_repeat_interleave(n)
        self._mask = self._mask.repeat_interleave(n, 0)
        self._next = self._next.repeat_interleave(n, 0)

    def select(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)
        self._mask, self._next = self._mask[rows], self._next[rows]

    def step(self, tokens: Tensor) -> Tensor:
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        logits = self._forward(tokens[:, None], self._next[:, None])
        self._next = self._next + 1
        return logits

    def _forward(self, ids: Tensor, positions: Tensor, **images: Any) -> Tensor:
        placed = {"position_ids": positions} if self._takes_positions else {}
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            use_cache=True,
            **placed,
            **images,
            **self._keep_last,
            **{self._cache_name: self._cache},
        )
        logits: Tensor = output.logits
        return logits[:, -1]
