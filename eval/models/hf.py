"""lm-eval's `hf` model (transformers' own generation), and what it drops: tokens and truncation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from torch import Tensor

from eval.decoding import derived_seed
from eval.models.response import Response, batches_by_length


class HuggingFace(HFLM):  # type: ignore[misc]
    """`HFLM` that returns `Response`s, seeds every batch by itself and refuses to cut a prompt."""

    def __init__(
        self, checkpoint: Path, batch_size: int, device: str, dtype: str, before_batch: Callable[[], None]
    ) -> None:
        super().__init__(pretrained=str(checkpoint), batch_size=batch_size, device=device, dtype=dtype)
        self._before_batch = before_batch
        self._batch = 0
        self._generated: list[list[int]] = []

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = True) -> list[Response]:
        """One response per request, in order. Raises ValueError for a prompt that leaves no room for one."""
        lengths = [self._prompt_length(*request.args) for request in requests]
        responses: dict[int, Response] = {}
        self._batch = 0
        for batch in batches_by_length(lengths, self.batch_size, self._before_batch):
            # lm-eval sorts a batch by (-length, text); sorted so beforehand, it stays in order.
            batch.sort(key=lambda index: (-lengths[index], requests[index].args[0]))
            texts = super().generate_until([requests[index] for index in batch], disable_tqdm)
            limit = requests[batch[0]].args[1]["max_gen_toks"]
            for index, text, tokens in zip(batch, texts, self._generated, strict=True):
                responses[index] = self._response(text, tokens, limit)
            self._batch += 1
        return [responses[index] for index in range(len(requests))]

    def _model_generate(
        self, context: Tensor, max_length: int, stop: list[str], *, seed: int, **generation_kwargs: Any
    ) -> Tensor:
        with torch.random.fork_rng():
            torch.manual_seed(derived_seed(seed, self._batch))
            output: Tensor = super()._model_generate(context, max_length, stop, **generation_kwargs)
        self._generated = output[:, context.shape[1] :].tolist()
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
