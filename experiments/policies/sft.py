"""Supervised warm-up of a causal LM on (prompt, response) pairs, with explicit seeds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel

from experiments.policies.settings import SftSettings

BATCHES_PER_POOL = 16
ANNOUNCE_EVERY = 100


@dataclass(frozen=True)
class Example:
    """Token ids of a prompt and of the response to it, end-of-sequence included."""

    prompt: list[int]
    response: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.response)


@dataclass(frozen=True)
class Rows:
    """B sequences of up to L tokens, padded on the right: no real token looks at the padding that follows it.

    tokens: (B, L) int64. is_target: (B, L - 1) bool, where the next token belongs to a response.
    targets: (T,) int64, those next tokens.
    """

    tokens: torch.Tensor
    is_target: torch.Tensor
    targets: torch.Tensor


def warm_up(
    model: PreTrainedModel,
    draw_examples: Callable[[int], Sequence[Example]],
    settings: SftSettings,
    pad_token_id: int,
    announce: Callable[[str], None],
) -> None:
    """Train `model` in place on `settings.steps` batches; the loss is over response tokens alone.

    draw_examples: so many fresh examples. Raises as `train` does.
    """
    batches = _batches(draw_examples, settings.batch_size, pad_token_id, random.Random(settings.seed))

    def loss(step: int) -> torch.Tensor:
        rows, mean_targets = next(batches)
        hidden = model.base_model(input_ids=rows.tokens[:, :-1]).last_hidden_state
        logits = model.get_output_embeddings()(hidden[rows.is_target])
        return F.cross_entropy(logits, rows.targets, reduction="sum") / mean_targets

    train(model, loss, settings, announce)


def train(
    model: PreTrainedModel,
    loss_of: Callable[[int], torch.Tensor],
    settings: SftSettings,
    announce: Callable[[str], None],
) -> None:
    """`settings.steps` updates of `model` in place. loss_of: the loss of a step, from 1.

    Raises RuntimeError when a loss is not finite.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=settings.lr,
        betas=settings.betas,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    model.train()
    for step in range(1, settings.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(settings, step)
        loss = loss_of(step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimizer.step()
        if not math.isfinite(loss.item()):
            raise RuntimeError(
                f"warm-up: the loss is {loss.item()} at step {step}; lower sft.lr = {settings.lr}"
            )
        if step % ANNOUNCE_EVERY == 0 or step == settings.steps:
            announce(f"warm-up step {step}/{settings.steps}, loss {loss.item():.3f}")
    model.eval()


def learning_rate(settings: SftSettings, step: int) -> float:
    """The learning rate of a step, 1-based: linearly up to `lr`, then linearly to `final_lr` at the last."""
    if step <= settings.warmup_steps:
        return settings.lr * step / settings.warmup_steps
    done = (step - settings.warmup_steps) / (settings.steps - settings.warmup_steps)
    return settings.lr + (settings.final_lr - settings.lr) * done


def _batches(
    draw_examples: Callable[[int], Sequence[Example]], batch_size: int, pad_token_id: int, rng: random.Random
) -> Iterator[tuple[Rows, float]]:
    """Batches of like length, so that little is padded: drawn by the pool, sorted, cut, and shuffled.

    Beside each the number of targets on average over batches: as the loss's divisor it lets every token count
    alike, while a mean over the batch would favour short responses, which share one.
    """
    while True:
        pool = sorted(draw_examples(BATCHES_PER_POOL * batch_size), key=len)
        mean_targets = sum(len(example.response) for example in pool) / BATCHES_PER_POOL
        batches = [pool[start : start + batch_size] for start in range(0, len(pool), batch_size)]
        rng.shuffle(batches)
        for batch in batches:
            yield padded(batch, pad_token_id), mean_targets


def padded(examples: Sequence[Example], pad_token_id: int) -> Rows:
    """The examples as rows, in their order."""
    width = max(map(len, examples))
    tokens = torch.full((len(examples), width), pad_token_id)
    is_target = torch.zeros((len(examples), width - 1), dtype=torch.bool)
    for row, example in enumerate(examples):
        tokens[row, : len(example)] = torch.tensor(example.prompt + example.response)
        is_target[row, len(example.prompt) - 1 : len(example) - 1] = True
    return Rows(tokens, is_target, tokens[:, 1:][is_target])
