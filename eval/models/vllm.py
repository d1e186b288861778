"""vLLM as an lm-eval model, for texts and for texts with images; an optional extra, on GPU nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance

from eval.benchmark_settings import BenchmarkSettings
from eval.decoding import derived_seed
from eval.model_options import VllmOptions
from eval.models.batched import Batch, GenerativeModel, images_of, in_order
from eval.models.response import Response, cut_at_stop


class Vllm(GenerativeModel):
    """vLLM's own batching, `batch_size` requests at a time so that finished ones reach the disk.

    Each request has a seed of its own: vLLM would otherwise draw a prompt's samples alike.
    """

    MULTIMODAL = True

    def __init__(
        self, checkpoint: Path, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        """Raises ImportError, with the way out, when vLLM is not installed."""
        super().__init__()
        try:
            import vllm
        except ImportError as error:
            raise ImportError(
                f"lm={settings.lm} needs vLLM, which is not installed: pip install 'fastrl-suite[vllm]' on a "
                "machine with a GPU, or choose lm=hf or lm=hf-multimodal"
            ) from error
        from transformers import AutoProcessor, AutoTokenizer

        options = VllmOptions(**settings.lm_options)
        self.before_batch = before_batch
        self._vllm: Any = vllm
        self._checkpoint = str(checkpoint)
        self._batch_size = settings.batch_size
        self._images = settings.lm == "vllm-vlm"
        self._template: Any = (AutoProcessor if self._images else AutoTokenizer).from_pretrained(checkpoint)
        self._model = vllm.LLM(
            model=str(checkpoint),
            dtype=settings.dtype,
            tensor_parallel_size=options.tensor_parallel_size,
            gpu_memory_utilization=options.gpu_memory_utilization,
            max_model_len=options.max_model_len,
        )

    def apply_chat_template(
        self, chat_history: Sequence[Mapping[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The checkpoint's template; images become its own placeholders."""
        history: list[dict[str, Any]] = [dict(message) for message in chat_history]
        for message in history if self._images else ():
            parts: list[dict[str, str]] = []
            for index, part in enumerate(message["content"].split("<image>")):
                parts += [{"type": "image"}] if index else []
                parts += [{"type": "text", "text": part}] if part else []
            message["content"] = parts
        text: str = self._template.apply_chat_template(
            history, tokenize=False, add_generation_prompt=add_generation_prompt
        )
        return text

    def chat_template(self, chat_template: bool | str = False) -> str:
        """The checkpoint's template, for lm-eval's record."""
        return str(self._template.chat_template or "")

    @property
    def tokenizer_name(self) -> str:
        return self._checkpoint

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """Batches in the order of the requests."""
        for batch in in_order(requests, self._batch_size):
            yield batch, partial(self._generated, requests, batch)

    def _generated(self, requests: Sequence[Instance], batch: Sequence[int]) -> list[Response]:
        prompts, ways = [], []
        for index in batch:
            context, arguments = requests[index].args[:2]
            images = [image.copy() for image in images_of(requests[index])]
            prompts.append({"prompt": context, **({"multi_modal_data": {"image": images}} if images else {})})
            ways.append(
                self._vllm.SamplingParams(
                    temperature=arguments["temperature"],
                    top_p=1.0,
                    top_k=-1,
                    max_tokens=arguments["max_gen_toks"],
                    stop=arguments["until"] or None,
                    seed=derived_seed(arguments["seed"], index) % 2**31,
                )
            )
        outputs = self._model.generate(prompts, ways, use_tqdm=False)
        responses = []
        for index, output in zip(batch, outputs, strict=True):
            (done,) = output.outputs
            responses.append(
                Response(
                    cut_at_stop(done.text, requests[index].args[1]["until"]),
                    tokens=len(done.token_ids),
                    truncated=done.finish_reason == "length",
                )
            )
        return responses
