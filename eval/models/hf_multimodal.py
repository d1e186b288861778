"""lm-eval's `hf-multimodal` model (transformers, text with images), and what it drops: tokens, truncation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval.models.hf_vlms import HFMultimodalLM
from torch import Tensor

from eval.benchmark_settings import BenchmarkSettings
from eval.models.hf import HuggingFaceBatches, check_device
from fastrl.engines.reference.qwen_processor import load_qwen_processor, needs_qwen_processor


class HuggingFaceMultimodal(HuggingFaceBatches, HFMultimodalLM):  # type: ignore[misc]
    """`HFMultimodalLM` that returns `Response`s, seeds every batch and refuses to cut a prompt."""

    lm_eval_class = HFMultimodalLM

    def __init__(
        self, checkpoint: Path, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        check_device(settings.device)
        HFMultimodalLM.__init__(
            self,
            pretrained=str(checkpoint),
            batch_size=settings.batch_size,
            device=settings.device,
            dtype=settings.dtype,
            convert_img_format=True,
        )
        self.before_batch = before_batch
        self._room = self.max_length - settings.max_gen_toks

    def _create_tokenizer(self, pretrained: str, *arguments: Any, **options: Any) -> None:
        """lm-eval's hook, which would fail on a Qwen checkpoint where torchvision is not installed."""
        if not needs_qwen_processor(Path(pretrained)):
            super()._create_tokenizer(pretrained, *arguments, **options)
            return
        self.processor = load_qwen_processor(Path(pretrained))
        self.tokenizer = self.processor.tokenizer

    def tok_batch_multimodal_encode(
        self,
        strings: list[str],
        images: Sequence[Any],
        padding_side: str = "left",
        left_truncate_len: int | None = None,
        truncation: bool = False,
    ) -> Any:
        """lm-eval's hook, which would cut what is too long from the left, images included.

        Raises ValueError for a prompt that, its images included, leaves no room for a response.
        """
        encoding = super().tok_batch_multimodal_encode(strings, images, padding_side, None, truncation)
        lengths = encoding["attention_mask"].sum(dim=1).tolist()
        for text, length in zip(strings, lengths, strict=True):
            if length > self._room:
                raise ValueError(
                    f"a prompt of {length} tokens with its images leaves the model, of {self.max_length}, no "
                    f"room for {self.max_length - self._room} more: lower max_gen_toks; it begins "
                    f"{text[:80]!r}"
                )
        return encoding

    def _model_generate(
        self, context: Tensor, max_length: int, stop: list[str], *, seed: int, **generation_kwargs: Any
    ) -> Tensor:
        """For tasks without images, which lm-eval hands to its text model."""
        generate = partial(super()._model_generate, context, max_length, stop, **generation_kwargs)
        return self.seeded(seed, context.shape[1], generate)

    def _model_multimodal_generate(
        self, inputs: Any, max_length: int, stop: list[str], *, seed: int, **generation_kwargs: Any
    ) -> Tensor:
        generate = partial(super()._model_multimodal_generate, inputs, max_length, stop, **generation_kwargs)
        return self.seeded(seed, inputs["input_ids"].shape[1], generate)
