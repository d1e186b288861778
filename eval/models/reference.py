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
from eval.datasets.images import LazyImage
from eval.decoding import derived_seed
from eval.models.batched import Batch, GenerativeModel, images_of
from eval.models.response import Response, batches_by_length, cut_at_stop
from fastrl.engines.reference.policy import Policy, load_policy
from fastrl.engines.reference.sampler import sample

Prompt = tuple[str, tuple[str, ...]]
"""What a model is asked: a text, and the places of its images."""


class Reference(GenerativeModel):
    """Generation with `fastrl.engines.reference.sampler`; no log-likelihoods.

    An image-text policy reads the images of a request, in the chat template.
    """

    MULTIMODAL = True

    def __init__(
        self, checkpoint: Path, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        super().__init__()
        self.before_batch = before_batch
        self._policy: Policy = load_policy(checkpoint, settings.device, settings.dtype)
        self._checkpoint = str(checkpoint)
        self._batch_size = settings.batch_size
        self._templated = settings.chat_template

    def apply_chat_template(
        self, chat_history: Sequence[Mapping[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The text as a user's message in an image-text policy's chat template, with its images' places.

        Raises ValueError for a text policy, which is asked as it is trained, without a template.
        """
        if self._policy.vision is None:
            raise ValueError(
                "lm=reference asks a text policy without a chat template; set chat_template: false"
            )
        (message,) = chat_history
        return self._policy.vision.reader.templated(message["content"])

    def chat_template(self, chat_template: bool | str = False) -> str:
        """The policy's template, for lm-eval's record."""
        return "" if self._policy.vision is None else str(self._policy.vision.processor.chat_template or "")

    @property
    def tokenizer_name(self) -> str:
        return self._checkpoint

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """Batches of prompts with all their samples. Raises ValueError for a prompt that leaves no room, and
        for images that the policy cannot see or that have no place in a chat template."""
        samples_of: dict[Prompt, list[int]] = {}
        for index, request in enumerate(requests):
            places = tuple(image.source for image in images_of(request))
            samples_of.setdefault((request.args[0], places), []).append(index)
        arguments = requests[0].args[1]
        asked, groups = list(samples_of), list(samples_of.values())
        n = max(map(len, groups))
        at_once = max(1, self._batch_size // n)
        if self._policy.vision is None:
            prompts = self._tokenized(asked, arguments["max_gen_toks"])
            lengths = [len(prompt) for prompt in prompts]
        else:  # images are read batch by batch: all together may not fit into memory
            prompts, lengths = [], [len(text) for text, _ in asked]
        for number, batch in enumerate(batches_by_length(lengths, at_once)):
            if self._policy.vision is None:
                read: Callable[[], Sequence[list[int]]] = partial(list, [prompts[index] for index in batch])
            else:
                read = partial(self._seen, [asked[index] for index in batch], arguments["max_gen_toks"])
            sizes = [len(groups[index]) for index in batch]
            yield (
                [request for index in batch for request in groups[index]],
                partial(self._generated, read, sizes, n, arguments, number),
            )

    def _tokenized(self, asked: Sequence[Prompt], max_gen_toks: int) -> Sequence[list[int]]:
        """Token ids of texts without images."""
        if any(places for _, places in asked):
            raise ValueError(f"the benchmark has images, but the policy {self._checkpoint} reads text alone")
        contexts = [text for text, _ in asked]
        prompts: list[list[int]] = self._policy.tokenizer(contexts)["input_ids"]
        self._check_room(contexts, prompts, max_gen_toks)
        return prompts

    def _seen(self, asked: Sequence[Prompt], max_gen_toks: int) -> Sequence[list[int]]:
        """Prompts of texts with images."""
        assert self._policy.vision is not None
        if not self._templated and any(places for _, places in asked):
            raise ValueError(
                "the benchmark has images, which need a place in a message: set chat_template: true"
            )
        read = self._policy.vision.reader.read_templated
        prompts = [
            read((text, places), text, [LazyImage(place) for place in places]) for text, places in asked
        ]
        self._check_room([text for text, _ in asked], prompts, max_gen_toks)
        return prompts

    def _generated(
        self,
        read: Callable[[], Sequence[list[int]]],
        sizes: Sequence[int],
        n: int,
        arguments: Mapping[str, Any],
        number: int,
    ) -> list[Response]:
        """The first `sizes[i]` of n samples of each prompt; the batch's number seeds them."""
        prompts = read()
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
        room = self._policy.model.config.get_text_config().max_position_embeddings - max_gen_toks
        for context, prompt in zip(contexts, prompts, strict=True):
            if len(prompt) > room:
                raise ValueError(
                    f"a prompt of {len(prompt)} tokens leaves the model, of {room + max_gen_toks}, no room "
                    f"for {max_gen_toks} more: lower max_gen_toks; it begins {context[:80]!r}"
                )
