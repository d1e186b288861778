"""Log-probabilities of response tokens under a model, with as little padding as the batch allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fastrl.engines.reference.image_features import FeaturesOf, ImageFeatures
from fastrl.engines.reference.image_prompts import ImagePrompt
from fastrl.engines.reference.policy_error import known_architecture
from fastrl.rollouts import IntArray


@dataclass(frozen=True)
class Sequences:
    """K prompts, each with its response behind it and padding on the right.

    Under a causal model no token sees the padding, so neither an attention mask nor position ids are needed.

    tokens: (K, S) int64. prompt_lengths, response_lengths: (K,) int64 on the same device; a response may be
    empty. image_prompts: the K prompts, for an image-text model; none for others.
    """

    tokens: Tensor
    prompt_lengths: Tensor
    response_lengths: Tensor
    image_prompts: tuple[ImagePrompt, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: Tensor) -> Sequences:
        """These rows, in this order, cut to the longest of them."""
        prompts, responses = self.prompt_lengths[rows], self.response_lengths[rows]
        width = int((prompts + responses).max()) if len(rows) else 0
        images = tuple(self.image_prompts[row] for row in rows.tolist()) if self.image_prompts else ()
        return Sequences(self.tokens[rows, :width], prompts, responses, images)

    def batches(self, size: int) -> Iterator[Tensor]:
        """Row numbers in batches of at most `size`, longest first: rows of a batch are alike in length."""
        order = (self.prompt_lengths + self.response_lengths).argsort(descending=True, stable=True)
        yield from torch.split(order, size)

    def response_mask(self, width: int) -> Tensor:
        """(K, width) True on response tokens, counted from the response's start."""
        return torch.arange(width, device=self.tokens.device) < self.response_lengths[:, None]


def join_sequences(
    prompts: Sequence[Sequence[int]],
    tokens: IntArray,
    token_offsets: IntArray,
    pad_id: int,
    device: torch.device,
) -> Sequences:
    """Put response i, `tokens[token_offsets[i]:token_offsets[i + 1]]`, behind `prompts[i]`."""
    prompt_lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int64)
    response_lengths = np.diff(token_offsets).astype(np.int64)
    width = int((prompt_lengths + response_lengths).max()) if len(prompts) else 0
    padded = np.full((len(prompts), width), pad_id, dtype=np.int64)
    for i, prompt in enumerate(prompts):
        response = tokens[token_offsets[i] : token_offsets[i + 1]]
        padded[i, : len(prompt)] = prompt
        padded[i, len(prompt) : len(prompt) + len(response)] = response
    return Sequences(
        tokens=torch.from_numpy(padded).to(device),
        prompt_lengths=torch.from_numpy(prompt_lengths).to(device),
        response_lengths=torch.from_numpy(response_lengths).to(device),
        image_prompts=tuple(prompt for prompt in prompts if isinstance(prompt, ImagePrompt)),
    )


@dataclass(frozen=True)
class Scorer:
    """A model together with what is known about its head.

    separate_head: logits are the output embedding applied to the last hidden state and nothing else, so the
    head can be left out for prompts and padding. images: of an image-text model, what it makes of images.
    """

    model: Any
    separate_head: bool
    images: ImageFeatures | None = None


def make_scorer(model: Any, images: ImageFeatures | None = None) -> Scorer:
    """Find out by a trial whether the model's head can be applied apart (some cap or scale their logits).

    PolicyError for an image-text model that does not read a text without images.
    """
    with nullcontext() if images is None else known_architecture(model):
        return Scorer(model, _has_separate_head(model), images)


@torch.no_grad()
def _has_separate_head(model: Any) -> bool:
    head = model.get_output_embeddings()
    if head is None:
        return False
    embedding = model.get_input_embeddings().weight
    ids = torch.arange(min(8, embedding.shape[0]), device=embedding.device)[None]
    hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    whole = model(input_ids=ids, use_cache=False).logits
    apart = head(hidden)
    return apart.shape == whole.shape and torch.allclose(apart, whole)


def response_logprobs(
    scorer: Scorer, sequences: Sequences, temperature: float, features: FeaturesOf | None = None
) -> Tensor:
    """(B, L) float32 log-probabilities of the response tokens at this temperature, 0 in the padding.

    L is the longest response of the batch. features: of the prompts' images, computed unless given.
    Differentiable when gradients are on, into the vision tower too unless its features are constant.
    """
    positions = torch.arange(sequences.tokens.shape[1] - 1, device=sequences.tokens.device)
    first = sequences.prompt_lengths[:, None] - 1  # its logits predict the first response token
    predicts = (positions >= first) & (positions < first + sequences.response_lengths[:, None])
    targets = sequences.tokens[:, 1:][predicts]
    images = image_arguments(scorer, sequences, features)
    if scorer.separate_head:
        output = scorer.model.base_model(input_ids=sequences.tokens, use_cache=False, **images)
        logits = scorer.model.get_output_embeddings()(output.last_hidden_state[:, :-1][predicts])
    else:
        logits = scorer.model(input_ids=sequences.tokens, use_cache=False, **images).logits[:, :-1][predicts]
    logits = logits.float()
    if temperature != 1:
        logits = logits / temperature
    flat = -F.cross_entropy(logits, targets, reduction="none")
    mask = sequences.response_mask(int(sequences.response_lengths.max()))
    return flat.new_zeros(mask.shape).masked_scatter(mask, flat)


@torch.no_grad()
def score(scorer: Scorer, sequences: Sequences, temperature: float, batch: int) -> Tensor:
    """`response_logprobs` of any number of sequences, `batch` at a time, in their order."""
    width = int(sequences.response_lengths.max()) if len(sequences) else 0
    features = None if scorer.images is None else scorer.images.of(sequences.image_prompts)
    logp = torch.zeros(len(sequences), width, device=sequences.tokens.device)
    for rows in sequences.batches(batch):
        part = response_logprobs(scorer, sequences.take(rows), temperature, features)
        logp[rows, : part.shape[1]] = part
    return logp


def image_arguments(
    scorer: Scorer, sequences: Sequences, features: FeaturesOf | None = None
) -> dict[str, Any]:
    """What an image-text model's forward pass takes besides tokens; {} for other models.

    features: of the prompts' images, computed unless given.
    """
    if scorer.images is None:
        return {}
    placed = scorer.images.place(
        sequences.image_prompts,
        sequences.tokens.shape[1],
        left_padded=False,
        features=features,
        tokens=sequences.tokens,
    )
    return {"position_ids": placed.positions, **placed.forward_arguments()}
