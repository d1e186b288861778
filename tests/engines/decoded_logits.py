"""What a decoder gives along a whole path: prompts read, repeated, continued, selected from and continued."""

from __future__ import annotations

import torch
from torch import Tensor

from fastrl.engines.reference.decoder import Decoder
from fastrl.engines.reference.image_prompts import PlacedPrompts


@torch.no_grad()
def decoded_logits(
    decoder: Decoder, ids: Tensor, mask: Tensor, images: PlacedPrompts | None = None
) -> list[Tensor]:
    """Logits after left-padded prompts (B, P), at least five, and after each of eight tokens."""
    tokens = torch.randint(2, 20, (8, 2 * len(ids)), generator=torch.Generator().manual_seed(1))
    logits = [decoder.prefill(ids, mask, images)]
    decoder.repeat(2)
    logits += [decoder.step(tokens[position]) for position in range(3)]
    rows = torch.tensor([7, 0, 4, 9])
    decoder.select(rows)
    return logits + [decoder.step(tokens[position, rows]) for position in range(3, 8)]
