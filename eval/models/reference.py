"""An lm-eval model around the embedded engine's sampler: each prompt is read once for all its samples.

It draws from the same distributions as `hf` with other random numbers; greedy responses are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.instance import Instance

from eval.benchmark_settings import BenchmarkSettings
from eval.decoding import derived_seed
from eval.models.batched import Batch, GenerativeModel
from eval.models.response import Response, batches_by_length, cut_at_stop
from fastrl.engines.reference.policy import Policy, load_policy
from fastrl.engines.reference.sampler import sample


class Reference(GenerativeModel):
    """Generation with `fastrl.engines.reference.sampler`; no log-likelihoods."""

    def __init__(
        self, checkpoint: Path, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        super().__init__()
        self.before_batch = before_batch
        self._policy: Policy = load_policy(checkpoint, settings.device, settings.dtype)
        self._batch_size = settings.batch_size

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """Batches of prompts with all their samples. Raises ValueError for a prompt that leaves no room."""
        samples_of: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            samples_of.setdefault(request.args[0], []).append(index)
        arguments = requests[0].args[1]
        contexts, groups = list(samples_of), list(samples_of.values())
        prompts: list[list[int]] = self._policy.tokenizer(contexts)["input_ids"]
        self._check_room(contexts, prompts, arguments["max_gen_toks"])
        n = max(map(len, groups))
        at_once = max(1, self._batch_size // n)
        lengths = [len(prompt) for prompt in prompts]
        for number, batch in enumerate(batches_by_length(lengths, at_once)):
            generate = partial(
                self._generated,
                [prompts[index] for index in batch],
                [len(groups[index]) for index in batch],
                n,
                arguments,
                number,
            )
            yield [request for index in batch for request in groups[index]], generate

    def _generated(
        self,
        prompts: Sequence[list[int]],
        sizes: Sequence[int],
        n: int,
        arguments: Mapping[str, Any],
        number: int,
    ) -> list[Response]:
        """The first `sizes[i]` of n samples of each prompt; the batch's number seeds them."""
        sampled = sample(
            self._policy,
            prompts,
            n,
            max_tokens=arguments["max_gen_toks"],
            temperature=arguments["temperature"],
            batch=len(prompts) * n,
            generator=torch.Generator().manual_seed(derived_seed(arguments["seed"], number)),
        )
        rows = [tokens[:length] for tokens, length in zip(sampled.tokens, sampled.lengths, strict=True)]
        texts = self._policy.tokenizer.batch_decode(rows, skip_special_tokens=True)
        responses = []
        for place, size in enumerate(sizes):
            for row in range(place * n, place * n + size):
                text = cut_at_stop(texts[row], arguments["until"])
                ended = bool(sampled.finished[row]) or text != texts[row]
                responses.append(Response(text, tokens=len(rows[row]), truncated=not ended))
        return responses

    def _check_room(
        self, contexts: Sequence[str], prompts: Sequence[Sequence[int]], max_gen_toks: int
    ) -> None:
        room = self._policy.model.config.max_position_embeddings - max_gen_toks
        for context, prompt in zip(contexts, prompts, strict=True):
            if len(prompt) > room:
                raise ValueError(
                    f"a prompt of {len(prompt)} tokens leaves the model, of {room + max_gen_toks}, no room "
                    f"for {max_gen_toks} more: lower max_gen_toks; it begins {context[:80]!r}"
                )
