"""An lm-eval model around the embedded engine's sampler: each prompt is read once for all its samples.

It draws from the same distributions as `hf` with other random numbers; greedy responses are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from eval.decoding import derived_seed
from eval.models.response import Response, batches_by_length, cut_at_stop
from fastrl.engines.reference.policy import Policy, load_policy
from fastrl.engines.reference.sampler import sample


class Reference(LM):  # type: ignore[misc]
    """Generation with `fastrl.engines.reference.sampler`; no log-likelihoods."""

    def __init__(
        self, checkpoint: Path, batch_size: int, device: str, dtype: str, before_batch: Callable[[], None]
    ) -> None:
        super().__init__()
        self._policy: Policy = load_policy(checkpoint, device, dtype)
        self._batch_size = batch_size
        self._before_batch = before_batch

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = True) -> list[Response]:
        """One response per request, in order. Raises ValueError for a prompt that leaves no room for one."""
        samples_of: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            samples_of.setdefault(request.args[0], []).append(index)
        arguments = requests[0].args[1]
        contexts, groups = list(samples_of), list(samples_of.values())
        prompts: list[list[int]] = self._policy.tokenizer(contexts)["input_ids"]
        self._check_room(contexts, prompts, arguments["max_gen_toks"])
        n = max(map(len, groups))
        responses: dict[int, Response] = {}
        at_once = max(1, self._batch_size // n)
        lengths = [len(prompt) for prompt in prompts]
        for number, batch in enumerate(batches_by_length(lengths, at_once, self._before_batch)):
            sampled = sample(
                self._policy,
                [prompts[index] for index in batch],
                n,
                max_tokens=arguments["max_gen_toks"],
                temperature=arguments["temperature"],
                batch=len(batch) * n,
                generator=torch.Generator().manual_seed(derived_seed(arguments["seed"], number)),
            )
            rows = [tokens[:length] for tokens, length in zip(sampled.tokens, sampled.lengths, strict=True)]
            texts = self._policy.tokenizer.batch_decode(rows, skip_special_tokens=True)
            for place, index in enumerate(batch):
                for offset, request in enumerate(groups[index]):
                    row = place * n + offset
                    text = cut_at_stop(texts[row], arguments["until"])
                    ended = bool(sampled.finished[row]) or text != texts[row]
                    responses[request] = Response(text, tokens=len(rows[row]), truncated=not ended)
        return [responses[index] for index in range(len(requests))]

    def loglikelihood(self, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError(
            "lm=reference only generates; use lm=hf for tasks that score given continuations"
        )

    def loglikelihood_rolling(self, requests: Sequence[Instance]) -> list[float]:
        raise NotImplementedError("lm=reference only generates; use lm=hf for tasks that score given texts")

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
