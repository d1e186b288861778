"""Sampling responses: a prompt is read once for all its rollouts, and finished responses leave the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fastrl.engines.reference.decoder import CachedDecoder, Decoder
from fastrl.engines.reference.image_prompts import ImagePrompt, PlacedPrompts
from fastrl.engines.reference.llama_decoder import LlamaDecoder, is_plain_llama
from fastrl.engines.reference.policy import Policy, PolicyError, left_padded

COMPACT_BELOW = 0.75
"""Finished rows are dropped once the unfinished ones make up less than this share of the batch."""


@dataclass(frozen=True)
class Responses:
    """N sampled responses, n consecutive ones per prompt.

    tokens: (N, L) int64, padded on the right; includes the end-of-sequence token. lengths: (N,) int64, at
    least 1. logp: (N, L) float32, log-probability of each token under the distribution it was drawn from (0
    in the padding). finished: (N,) True where the response ended by itself, False where the budget cut it.
    """

    tokens: NDArray[np.int64]
    lengths: NDArray[np.int64]
    logp: NDArray[np.float32]
    finished: NDArray[np.bool_]


def decode(tokenizer: Any, responses: Responses) -> list[str]:
    """The responses' texts, without special tokens."""
    rows = zip(responses.tokens, responses.lengths, strict=True)
    texts: list[str] = tokenizer.batch_decode(
        [row[:length] for row, length in rows], skip_special_tokens=True
    )
    return texts


def make_decoder(model: object, max_tokens: int) -> Decoder:
    """The fast decoder for models of exactly its architecture, for others the one that suits all."""
    return LlamaDecoder(model, max_tokens) if is_plain_llama(model) else CachedDecoder(model, max_tokens)


@torch.no_grad()
def sample(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    n: int,
    *,
    max_tokens: int,
    temperature: float,
    batch: int,
    generator: torch.Generator,
) -> Responses:
    """Sample n responses of at most `max_tokens` tokens to each prompt (token ids), from all tokens.

    temperature: 0 takes the most likely token each time. batch: responses decoded together at most (whole
    prompts, at least one). generator: on the CPU; the random number of (response, position) does not depend
    on which other responses are still running. PolicyError if the policy's probabilities are not finite.
    """
    at_once = max(1, batch // n)
    parts = [
        _sample_batch(policy, prompts[start : start + at_once], n, max_tokens, temperature, generator)
        for start in range(0, len(prompts), at_once)
    ]
    width = max((part.tokens.shape[1] for part in parts), default=0)
    return Responses(
        tokens=_stack([part.tokens for part in parts], width, policy.pad_id, np.int64),
        lengths=np.concatenate([part.lengths for part in parts]) if parts else np.zeros(0, np.int64),
        logp=_stack([part.logp for part in parts], width, 0, np.float32),
        finished=np.concatenate([part.finished for part in parts]) if parts else np.zeros(0, np.bool_),
    )


def _sample_batch(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    n: int,
    max_tokens: int,
    temperature: float,
    generator: torch.Generator,
) -> Responses:
    device = policy.device
    rows = len(prompts) * n
    eos = torch.tensor(policy.eos_ids, device=device)
    uniform = torch.rand(max_tokens, rows, dtype=torch.float64, generator=generator).to(device)
    tokens = torch.full((max_tokens, rows), policy.pad_id, device=device)
    logp = torch.zeros(max_tokens, rows, device=device)

    decoder = make_decoder(policy.model, max_tokens)
    ids, mask = left_padded(prompts, policy.pad_id, device)
    logits = decoder.prefill(ids, mask, _images(policy, prompts, ids.shape[1])).repeat_interleave(n, 0)
    decoder.repeat(n)
    row = torch.arange(rows, device=device)  # which response each row of the batch is
    running = torch.ones(rows, dtype=torch.bool, device=device)
    for position in range(max_tokens):
        drawn, logp[position, row] = draw(logits, temperature, uniform[position, row])
        tokens[position, row] = drawn
        running &= ~torch.isin(drawn, eos)
        n_running = int(running.sum())
        if not n_running or position + 1 == max_tokens:
            break
        if n_running < COMPACT_BELOW * len(row):
            keep = running.nonzero().squeeze(1)
            decoder.select(keep)
            row, drawn, running = row[keep], drawn[keep], running[keep]
        logits = decoder.step(drawn)
    return _cut_at_end(tokens.T, logp.T, eos, policy.pad_id)


def _images(policy: Policy, prompts: Sequence[Sequence[int]], width: int) -> PlacedPrompts | None:
    if policy.vision is None:
        return None
    read = [prompt for prompt in prompts if isinstance(prompt, ImagePrompt)]
    if len(read) < len(prompts):
        raise PolicyError(
            "an image-text policy samples from prompts that `read_prompts` has read, not from token ids"
        )
    return policy.vision.features.place(read, width, left_padded=True)


def _cut_at_end(tokens: Tensor, logp: Tensor, eos: Tensor, pad_id: int) -> Responses:
    """Responses (N, L) end at their first end token; what finished rows went on to draw is padding."""
    ends = torch.isin(tokens, eos)
    finished = ends.any(1)
    lengths = torch.where(finished, ends.int().argmax(1) + 1, tokens.shape[1])
    width = int(lengths.max())
    outside = torch.arange(width, device=tokens.device) >= lengths[:, None]
    logp = logp[:, :width].masked_fill(outside, 0)
    if not torch.isfinite(logp).all():
        raise PolicyError(
            "the policy gives probabilities that are not finite; its weights have diverged: go back to an "
            "earlier checkpoint and lower training.learning_rate"
        )
    return Responses(
        tokens=tokens[:, :width].masked_fill(outside, pad_id).cpu().numpy(),
        lengths=lengths.cpu().numpy(),
        logp=logp.cpu().numpy(),
        finished=finished.cpu().numpy(),
    )


def draw(logits: Tensor, temperature: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """One token per row of `logits` (N, V) and its log-probability (N,) float32.

    Inverse of the cumulative distribution at `uniform` (N,) float64 in [0, 1), summed in float64 so that a
    large vocabulary's tail keeps its share. At temperature 0 the most likely token, with log-probability 0.
    """
    if temperature == 0:
        token = logits.argmax(-1)
        return token, torch.zeros(len(token), device=logits.device)
    scaled = logits.float()
    probability = (scaled if temperature == 1 else scaled / temperature).softmax(-1)
    cumulative = probability.cumsum(-1, dtype=torch.float64)
    token = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)
    token = token.clamp(max=logits.shape[-1] - 1)
    return token.squeeze(1), probability.gather(1, token).log().squeeze(1)


def _stack(parts: list[NDArray[Any]], width: int, fill: float, dtype: type) -> NDArray[Any]:
    stacked: NDArray[Any] = np.full((sum(len(part) for part in parts), width), fill, dtype=dtype)
    start = 0
    for part in parts:
        stacked[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return stacked
