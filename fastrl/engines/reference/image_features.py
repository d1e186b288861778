"""What a model's vision tower makes of images: once per question, and kept where it cannot change."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPooling

from fastrl.engines.reference.bounded_cache import BoundedCache
from fastrl.engines.reference.image_prompts import (
    ImagePrompt,
    PlacedPrompts,
    image_token_id,
    placed,
)
from fastrl.engines.reference.policy_error import PolicyError
from fastrl.engines.reference.qwen_tower import QwenTower, is_qwen_tower

Features = tuple[Tensor, ...]
"""(T, d) features for a prompt's T image tokens; then those for deeper layers, of models that have them."""
FeaturesOf = Mapping[Hashable, Features]
"""Features by the prompts' keys; prompts without images have none."""
TOWER_BATCH = 32
"""Prompts whose images go through the tower together."""


def vision_parameters(model: Any) -> Iterator[tuple[str, Tensor]]:
    """The parameters outside the text model and its head: the vision tower and what leads from it to them."""
    head = model.get_output_embeddings()
    text = {id(parameter) for parameter in model.get_decoder().parameters()}
    text |= set() if head is None else {id(parameter) for parameter in head.parameters()}
    return ((name, value) for name, value in model.named_parameters() if id(value) not in text)


class ImageFeatures:
    """Features of prompts' images under one model.

    constant: the model's vision parameters do not change. Features are then computed without a gradient,
    each prompt by itself (so that they do not depend on which others were asked for), and kept up to
    `cache_bytes`. Otherwise each call computes them anew, once per distinct prompt, with a gradient where
    those are on.
    """

    def __init__(self, model: Any, constant: bool, cache_bytes: int) -> None:
        self.constant = constant
        self._base = model.base_model
        if "mm_encoder_outputs" not in inspect.signature(self._base.forward).parameters:
            raise PolicyError(
                f"{type(model).__name__} takes no ready image features (mm_encoder_outputs), which this "
                "engine needs; train it with engine=easyr1, or take one of transformers' models that does"
            )
        visual = getattr(self._base, "visual", None)
        self._own_tower = QwenTower(visual) if is_qwen_tower(visual) else None
        self._tower_names = set(inspect.signature(self._base.get_image_features).parameters)
        self._image_token = image_token_id(model)
        self._embedding = model.get_input_embeddings()
        self._kept: BoundedCache[Features] = BoundedCache(cache_bytes)
        self._in_parts = True  # whether the tower gives a tensor for each image, or one for all

    def of(self, prompts: Sequence[ImagePrompt]) -> dict[Hashable, Features]:
        """The features of each distinct prompt that has images."""
        distinct = {prompt.key: prompt for prompt in prompts if prompt.pixels}
        if self.constant:
            return {key: self._constant(prompt) for key, prompt in distinct.items()}
        wanted = list(distinct.values())
        features: dict[Hashable, Features] = {}
        for start in range(0, len(wanted), TOWER_BATCH):
            batch = wanted[start : start + TOWER_BATCH]
            parts = [batch] if _alike(batch) else [[prompt] for prompt in batch]
            for part in parts:
                features.update(zip((prompt.key for prompt in part), self._tower(part), strict=True))
        return features

    def follow_training(self, prompt: ImagePrompt) -> bool:
        """Whether constant features of a prompt's images depend on a parameter that requires a gradient."""
        with torch.enable_grad():
            (features,) = self._tower([prompt])
        self._keep(prompt, tuple(part.detach() for part in features))
        return any(part.requires_grad for part in features)

    def place(
        self,
        prompts: Sequence[ImagePrompt],
        width: int,
        *,
        left_padded: bool,
        features: FeaturesOf | None = None,
        tokens: Tensor | None = None,
    ) -> PlacedPrompts:
        """The prompts in rows of `width` columns with their features, which are computed unless given.

        tokens: (B, S), the rows' ids, when they hold responses: an image token that a policy has sampled is
        no piece of an image, and keeps its own embedding.
        """
        known = self.of(prompts) if features is None else features
        rows = [known[prompt.key] for prompt in prompts if prompt.pixels]
        if tokens is not None:
            rows = self._with_sampled(prompts, known, tokens)
        weight = self._embedding.weight
        return placed(prompts, width, left_padded, _outputs(rows, self._in_parts), weight.device)

    def _with_sampled(
        self, prompts: Sequence[ImagePrompt], features: FeaturesOf, tokens: Tensor
    ) -> list[Features]:
        if not features:  # no image at all: the model embeds every token by itself
            return []
        counts = (tokens == self._image_token).sum(1).tolist()
        rows = []
        for prompt, count in zip(prompts, counts, strict=True):
            if prompt.pixels:
                rows.append(features[prompt.key])
            if sampled := count - prompt.image_tokens:
                own = self._embedding(tokens.new_full((sampled,), self._image_token))
                deeper = next(iter(features.values()))[1:]
                rows.append((own, *(layer.new_zeros(sampled, layer.shape[1]) for layer in deeper)))
        return rows

    def _constant(self, prompt: ImagePrompt) -> Features:
        known = self._kept.get(prompt.key)
        if known is None:
            with torch.no_grad():
                (known,) = self._tower([prompt])
            self._keep(prompt, known)
        return known

    def _keep(self, prompt: ImagePrompt, features: Features) -> None:
        size = sum(part.numel() * part.element_size() for part in features)
        self._kept.put(prompt.key, features, size)

    def _tower(self, prompts: Sequence[ImagePrompt]) -> list[Features]:
        device = self._embedding.weight.device
        pixels = {
            name: torch.cat([prompt.pixels[name] for prompt in prompts]).to(device)
            for name in prompts[0].pixels
            if name in self._tower_names
        }
        if self._own_tower is not None and self._own_tower.takes(pixels["image_grid_thw"]):
            layers = [self._own_tower.features(pixels["pixel_values"], pixels["image_grid_thw"])]
        else:
            output = self._base.get_image_features(**pixels, return_dict=True)
            self._in_parts = not isinstance(output.pooler_output, Tensor)
            layers = [output.pooler_output, *(getattr(output, "deepstack_features", None) or [])]
        counts = [prompt.image_tokens for prompt in prompts]
        joined = [_rows(layer) for layer in layers]
        if any(len(layer) != sum(counts) for layer in joined):
            raise PolicyError(
                f"the vision tower gives {[len(layer) for layer in joined]} features for the {sum(counts)} "
                f"image tokens of {prompts[0].key!r} and {len(prompts) - 1} others; the processor in the "
                "policy's folder belongs to another model"
            )
        return list(zip(*(torch.split(layer, counts) for layer in joined), strict=True))


def _alike(prompts: Sequence[ImagePrompt]) -> bool:
    """Whether the prompts' pixels differ along the first dimension alone, and so can be joined."""
    shapes = [{name: tensor.shape[1:] for name, tensor in prompt.pixels.items()} for prompt in prompts]
    return all(shape == shapes[0] for shape in shapes)


def _rows(features: Tensor | Sequence[Tensor]) -> Tensor:
    """Features of some images, in any of the forms that models give, as one (T, d) tensor."""
    parts = [features] if isinstance(features, Tensor) else list(features)
    return torch.cat([part.flatten(0, -2) for part in parts])


def _outputs(rows: Sequence[Features], in_parts: bool) -> Any:
    """What a forward pass takes for ready features: an output of its tower, in the tower's own form."""
    if not rows:
        return None
    pooled, *deeper = (torch.cat(layer) for layer in zip(*rows, strict=True))
    output = BaseModelOutputWithPooling(pooler_output=(pooled,) if in_parts else pooled)
    if deeper:
        output.deepstack_features = [(layer,) for layer in deeper]
    return output
