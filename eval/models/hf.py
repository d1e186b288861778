"""lm-eval's `hf` model (transformers' own generation), and what it drops: tokens and truncation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from torch import Tensor

from eval.benchmark_settings import BenchmarkSettings
from eval.decoding import derived_seed
from eval.models.batched import Batch, BatchedModel, with_images
from eval.models.response import Response, batches_by_length


class HuggingFaceBatches(BatchedModel):
    """What both models of transformers share; a subclass inherits one of lm-eval's too.

    It sets `before_batch`, and calls `seeded` around the generation of a batch.
    """

    lm_eval_class: type[Any]
    # Of lm-eval's class.
    batch_size: int
    max_length: int
    model: Any
    tokenizer: Any
    tok_encode: Callable[..., list[int]]
    tok_decode: Callable[..., str]

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """Batches by prompt length. Raises ValueError for a prompt that leaves no room for a response."""
        lengths = [self._prompt_length(*request.args[:2]) for request in requests]
        for number, batch in enumerate(batches_by_length(lengths, self.batch_size)):
            # lm-eval sorts a batch by (-length, text); sorted so beforehand, it stays in order.
            batch.sort(key=lambda index: (-lengths[index], requests[index].args[0]))
            yield batch, partial(self._generated_batch, [requests[index] for index in batch], number)

    def _generated_batch(self, requests: Sequence[Instance], number: int) -> list[Response]:
        self._batch = number
        opened = [with_images(request) for request in requests]
        texts = self.lm_eval_class.generate_until(self, opened, True)
        limit = requests[0].args[1]["max_gen_toks"]
        rows = zip(texts, self._generated, strict=True)
        return [self._response(text, tokens, limit) for text, tokens in rows]

    def seeded(self, seed: int, prompt_tokens: int, generate: Callable[[], Tensor]) -> Tensor:
        """What `generate` returns with the batch's own random numbers; its tokens are kept."""
        with torch.random.fork_rng():
            torch.manual_seed(derived_seed(seed, self._batch))
            output = generate()
        self._generated: list[list[int]] = output[:, prompt_tokens:].tolist()
        return output

    def _response(self, text: str, tokens: list[int], limit: int) -> Response:
        whole = self.tok_decode(tokens)
        if not whole.startswith(text):
            raise RuntimeError(
                f"lm-eval returned {text!r} where {whole!r} was generated: this version orders a batch in "
                "another way than eval.models.hf expects; use lm-eval 0.4.13 or lm=reference"
            )
        configured = self.model.generation_config.eos_token_id
        eos = {*(configured if isinstance(configured, list) else [configured]), self.tokenizer.eos_token_id}
        end = next((position for position, token in enumerate(tokens) if token in eos), None)
        if end is not None:
            return Response(text, tokens=end + 1, truncated=False)
        return Response(text, tokens=len(tokens), truncated=len(tokens) >= limit and text == whole)

    def _prompt_length(self, context: str, generation_kwargs: dict[str, Any]) -> int:
        length = len(self.tok_encode(context))
        room = self.max_length - generation_kwargs["max_gen_toks"]
        if length > room:
            raise ValueError(
                f"a prompt of {length} tokens leaves the model, of {self.max_length}, no room for "
                f"{generation_kwargs['max_gen_toks']} more: lower max_gen_toks; it begins {context[:80]!r}"
            )
        return length


def check_device(device: str) -> None:
    """Raise ValueError for a GPU where torch sees none."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device = {device}, but torch sees no GPU on this machine; set device=cpu")


class HuggingFace(HuggingFaceBatches, HFLM):  # type: ignore[misc]
    """`HFLM` that returns `Response`s, seeds every batch by itself and refuses to cut a prompt."""

    lm_eval_class = HFLM

    def __init__(
        self, checkpoint: Path, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        check_device(settings.device)
        HFLM.__init__(
            self,
            pretrained=str(checkpoint),
            batch_size=settings.batch_size,
            device=settings.device,
            dtype=settings.dtype,
        )
        self.before_batch = before_batch

    def _model_generate(
        self, context: Tensor, max_length: int, stop: list[str], *, seed: int, **generation_kwargs: Any
    ) -> Tensor:
        generate = partial(super()._model_generate, context, max_length, stop, **generation_kwargs)
        return self.seeded(seed, context.shape[1], generate)
