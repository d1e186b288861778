"""Incremental decoding of plain Llama, Qwen2 and Qwen2.5-VL models, without a general pass's overhead.

The layers are the model's own weights, read at every call, so training needs no copy back. Used only where
`is_plain_llama` finds exactly the architecture written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaForCausalLM, Qwen2_5_VLForConditionalGeneration, Qwen2ForCausalLM

from fastrl.engines.reference.image_prompts import PlacedPrompts


def is_plain_llama(model: Any) -> bool:
    """True for Llama, Qwen2 and Qwen2.5-VL (whose text model is Qwen2 with positions on three axes) with
    SiLU, rotary embeddings of any length alike, and no sliding window."""
    if type(model) not in (LlamaForCausalLM, Qwen2ForCausalLM, Qwen2_5_VLForConditionalGeneration):
        return False
    text = _text_model(model)
    config, rotary = text.config, text.rotary_emb
    return (
        config.hidden_act == "silu"
        and getattr(rotary, "rope_type", None) in ("default", "linear", "llama3")
        and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    )


@dataclass(frozen=True)
class _Layer:
    """One block's weights, the projections that read the same input joined."""

    input_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    output: Tensor
    output_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


class LlamaDecoder:
    """A `Decoder` with a key-value store of fixed size: the prompt's width plus `max_tokens`."""

    def __init__(self, model: Any, max_tokens: int) -> None:
        self._text = _text_model(model)
        self._head = model.lm_head
        self._image_token: int = getattr(model.config, "image_token_id", -1)
        config = self._text.config
        self._max_tokens = max_tokens
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._head_dim: int = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self._eps: float = config.rms_norm_eps
        self._layers = [_layer(block) for block in self._text.layers]

    def prefill(self, ids: Tensor, mask: Tensor, images: PlacedPrompts | None = None) -> Tensor:
        rows, width = ids.shape
        weight = self._text.embed_tokens.weight
        size = width + self._max_tokens
        self._store = weight.new_zeros(len(self._layers), 2, rows, self._kv_heads, size, self._head_dim)
        positions = torch.arange(size, device=ids.device)[None]
        cos, sin = self._text.rotary_emb(weight[:1, None], positions)
        self._cos, self._sin = cos[0], sin[0]
        self._used = 0
        hidden = torch.zeros(rows, 1, 1, size, dtype=weight.dtype, device=ids.device)
        self._bias = hidden.masked_fill(
            F.pad(mask == 0, (0, self._max_tokens))[:, None, None], torch.finfo(weight.dtype).min
        )
        later = torch.ones(width, width, dtype=torch.bool, device=ids.device).triu(1)
        causal = self._bias[..., :width].masked_fill(later, torch.finfo(weight.dtype).min)
        embedded = F.embedding(ids, weight)
        if images is None:
            self._next = mask.sum(1)
            return self._forward(embedded, *self._turns((mask.cumsum(1) - 1).clamp(min=0)), causal)
        self._next = images.next_positions
        if images.outputs is not None:
            at_images = ids.eq(self._image_token)[..., None]
            embedded = embedded.masked_scatter(at_images, images.outputs.pooler_output[0])
        cos, sin = self._text.rotary_emb(embedded, images.positions)
        return self._forward(embedded, cos[:, :, None], sin[:, :, None], causal)

    def repeat(self, n: int) -> None:
        self._store = self._store.repeat_interleave(n, 2)
        self._bias = self._bias.repeat_interleave(n, 0)
        self._next = self._next.repeat_interleave(n, 0)

    def select(self, rows: Tensor) -> None:
        kept = torch.empty_like(self._store[:, :, : len(rows)])
        kept[..., : self._used, :] = self._store[..., : self._used, :][:, :, rows]
        self._store, self._bias, self._next = kept, self._bias[rows], self._next[rows]

    def step(self, tokens: Tensor) -> Tensor:
        embedded = F.embedding(tokens[:, None], self._text.embed_tokens.weight)
        bias = self._bias[..., : self._used + 1]
        logits = self._forward(embedded, *self._turns(self._next[:, None]), bias)
        self._next = self._next + 1
        return logits

    def _turns(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines (B, T, 1, D) of positions (B, T) that are the same on every axis."""
        return self._cos[positions][:, :, None], self._sin[positions][:, :, None]

    def _forward(self, hidden: Tensor, cos: Tensor, sin: Tensor, bias: Tensor) -> Tensor:
        """Read T more embedded tokens per row; `bias` (B, 1, 1 or T, used + T) is added to the attention."""
        rows, width, _ = hidden.shape
        end = self._used + width
        rotated_heads = self._heads + self._kv_heads
        for layer, store in zip(self._layers, self._store, strict=True):
            qkv = F.linear(self._norm(hidden, layer.input_norm), layer.qkv, layer.qkv_bias)
            qkv = qkv.view(rows, width, rotated_heads + self._kv_heads, self._head_dim)
            turned = rotate(qkv[:, :, :rotated_heads], cos, sin)
            store[0, :, :, self._used : end] = turned[:, :, self._heads :].transpose(1, 2)
            store[1, :, :, self._used : end] = qkv[:, :, rotated_heads:].transpose(1, 2)
            attended = F.scaled_dot_product_attention(
                turned[:, :, : self._heads].transpose(1, 2),
                store[0, :, :, :end],
                store[1, :, :, :end],
                attn_mask=bias,
                enable_gqa=self._heads != self._kv_heads,
            )
            attended = attended.transpose(1, 2).reshape(rows, width, -1)
            hidden = hidden + F.linear(attended, layer.output, layer.output_bias)
            gate, up = F.linear(self._norm(hidden, layer.mlp_norm), layer.gate_up, layer.gate_up_bias).chunk(
                2, -1
            )
            hidden = hidden + F.linear(F.silu(gate) * up, layer.down, layer.down_bias)
        self._used = end
        last = self._norm(hidden[:, -1], self._text.norm.weight)
        return F.linear(last, self._head.weight)

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(hidden, weight.shape, weight, self._eps)


def _text_model(model: Any) -> Any:
    """The part of a model that reads embedded tokens."""
    return getattr(model.model, "language_model", model.model)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding on the last dimension, first half against second half."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def _layer(block: Any) -> _Layer:
    attention, mlp = block.self_attn, block.mlp
    joined = [attention.q_proj, attention.k_proj, attention.v_proj]
    widened = [mlp.gate_proj, mlp.up_proj]
    return _Layer(
        input_norm=block.input_layernorm.weight,
        qkv=torch.cat([linear.weight for linear in joined]),
        qkv_bias=_bias(joined),
        output=attention.o_proj.weight,
        output_bias=attention.o_proj.bias,
        mlp_norm=block.post_attention_layernorm.weight,
        gate_up=torch.cat([linear.weight for linear in widened]),
        gate_up_bias=_bias(widened),
        down=mlp.down_proj.weight,
        down_bias=mlp.down_proj.bias,
    )


def _bias(linears: list[Any]) -> Tensor | None:
    return None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
