"""Qwen2.5-VL's vision tower over the model's own weights, images of equal size all at once.

transformers' own goes through a batch image by image, which costs a small model more than its arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel

from fastrl.engines.reference.bounded_cache import BoundedCache
from fastrl.engines.reference.llama_decoder import rotate

LARGEST = 1024
"""Patches of an image up to which attention within windows is worth a mask over all pairs."""
_LAYOUT_BYTES = 32 << 20


def is_qwen_tower(tower: Any) -> bool:
    """True for exactly the architecture written here."""
    return type(tower) is Qwen2_5_VisionTransformerPretrainedModel and tower.config.hidden_act == "silu"


@dataclass(frozen=True)
class _Layout:
    """Of an image of P patches: rotary cosines and sines (P, D), and which pairs share a window (P, P)."""

    cos: Tensor
    sin: Tensor
    together: Tensor | None


class QwenTower:
    """Features of images, as `get_image_features` of the model gives them."""

    def __init__(self, tower: Any) -> None:
        self._tower = tower
        self._layouts: BoundedCache[_Layout] = BoundedCache(_LAYOUT_BYTES)

    def takes(self, grids: Tensor) -> bool:
        """Whether images of these grids (n, 3) are small enough."""
        return bool((grids.prod(1) <= LARGEST).all())

    def features(self, pixels: Tensor, grids: Tensor) -> list[Tensor]:
        """(T, d) for each image: `pixels` (P, c) are all images' patches, `grids` (n, 3) their sides."""
        sides = [tuple(grid) for grid in grids.tolist()]
        images = torch.split(pixels, [time * height * width for time, height, width in sides])
        found: dict[int, Tensor] = {}
        for side in dict.fromkeys(sides):
            alike = [index for index, own in enumerate(sides) if own == side]
            found.update(zip(alike, self._alike([images[i] for i in alike], side), strict=True))
        return [found[index] for index in range(len(sides))]

    def _alike(self, images: Sequence[Tensor], side: tuple[int, int, int]) -> Tensor:
        """(n, T, d) of images of one size."""
        tower, layout = self._tower, self._layout(side)
        weight = tower.patch_embed.proj.weight.flatten(1)
        hidden = F.linear(torch.stack(list(images)).to(weight.dtype), weight)
        for number, block in enumerate(tower.blocks):
            mask = None if number in tower.fullatt_block_indexes else layout.together
            hidden = hidden + self._attention(block.attn, _norm(block.norm1, hidden), layout, mask)
            inner = _norm(block.norm2, hidden)
            mlp = block.mlp
            hidden = hidden + mlp.down_proj(F.silu(mlp.gate_proj(inner)) * mlp.up_proj(inner))
        merger = tower.merger
        joined = _norm(merger.ln_q, hidden).view(len(images), -1, merger.hidden_size)
        merged: Tensor = merger.mlp(joined)
        return merged

    def _attention(self, attention: Any, hidden: Tensor, layout: _Layout, mask: Tensor | None) -> Tensor:
        rows, patches, width = hidden.shape
        split = attention.qkv(hidden).view(rows, patches, 3, attention.num_heads, -1)
        turned = rotate(split[:, :, :2].float(), layout.cos, layout.sin).to(hidden.dtype)
        query, key = turned.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, split[:, :, 2].transpose(1, 2), attn_mask=mask)
        mixed: Tensor = attention.proj(attended.transpose(1, 2).reshape(rows, patches, width))
        return mixed

    def _layout(self, side: tuple[int, int, int]) -> _Layout:
        known = self._layouts.get(side)
        if known is None:
            known = self._new_layout(side)
            size = known.cos.nbytes + known.sin.nbytes
            self._layouts.put(side, known, size + (0 if known.together is None else known.together.nbytes))
        return known

    @torch.no_grad()
    def _new_layout(self, side: tuple[int, int, int]) -> _Layout:
        time, height, width = side
        merge, device = self._tower.spatial_merge_size, self._tower.patch_embed.proj.weight.device
        row, column = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        # Patches come by the blocks of which a token is made.
        blocks = (height // merge, merge, width // merge, merge)
        places = torch.stack([x.reshape(blocks).transpose(1, 2).flatten() for x in (row, column)], 1)
        places = places.repeat(time, 1).to(device)
        cos, sin = self._tower.rotary_pos_emb(places, places)
        window = merge * (self._tower.window_size // merge // self._tower.patch_size)
        windows = places // window
        frame = torch.arange(time, device=device).repeat_interleave(height * width)
        same = (windows[:, None] == windows[None]).all(-1) & (frame[:, None] == frame[None])
        return _Layout(cos[:, None, None].float(), sin[:, None, None].float(), None if same.all() else same)


def _norm(norm: Any, hidden: Tensor) -> Tensor:
    return F.rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)
