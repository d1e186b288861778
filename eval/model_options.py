"""What an lm-eval model takes besides batch size, device and dtype: `lm_options` of a benchmark's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NoOptions:
    """A model that takes none."""


@dataclass(frozen=True)
class VllmOptions:
    """gpu_memory_utilization: share of the GPU's memory, in (0, 1]. max_model_len: tokens of prompt and
    response, None for the model's own."""

    tensor_parallel_size: int
    gpu_memory_utilization: float
    max_model_len: int | None

    def __post_init__(self) -> None:
        if self.tensor_parallel_size < 1 or not 0.0 < self.gpu_memory_utilization <= 1.0:
            raise ValueError(
                f"tensor_parallel_size = {self.tensor_parallel_size} must be at least 1, and "
                f"gpu_memory_utilization = {self.gpu_memory_utilization} lie in (0, 1]"
            )


@dataclass(frozen=True)
class OpenaiOptions:
    """A server that speaks OpenAI's chat completions.

    url: its base, with `/v1`. model: the name it serves. workers: requests at a time. timeout_s: of one
    request. retries: after a lost connection or a busy server (429, 5xx). key_file: a file with the API key,
    None for none.
    """

    url: str
    model: str
    workers: int
    timeout_s: float
    retries: int
    key_file: str | None

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url = {self.url!r} must start with http:// or https://")
        if self.workers < 1 or self.timeout_s <= 0 or self.retries < 0:
            raise ValueError(
                f"workers = {self.workers} must be at least 1, timeout_s = {self.timeout_s} above 0 and "
                f"retries = {self.retries} at least 0"
            )


@dataclass(frozen=True)
class ReplayOptions:
    """Recorded outputs: a JSONL file (gzip or not), one record per response.

    id_field: the record's question id; response_field: its text. Several records of a question are its
    samples, in order.
    """

    outputs: str
    id_field: str
    response_field: str


LM_OPTIONS: dict[str, type[Any]] = {
    "hf": NoOptions,
    "hf-multimodal": NoOptions,
    "openai": OpenaiOptions,
    "reference": NoOptions,
    "replay": ReplayOptions,
    "vllm": VllmOptions,
    "vllm-vlm": VllmOptions,
}
"""`lm` of a benchmark's config -> what its `lm_options` hold."""

WITHOUT_CHECKPOINT = ("openai", "replay")
"""Models that are no folder of weights: a server, a file."""


def build_options(lm: str, options: Mapping[str, Any]) -> Any:
    """The options of a model from a plain mapping. Raises ValueError naming the unknown or missing key."""
    if lm not in LM_OPTIONS:
        raise ValueError(f"lm = {lm!r} is unknown; known: {', '.join(sorted(LM_OPTIONS))}")
    try:
        return LM_OPTIONS[lm](**options)
    except TypeError as error:
        wanted = ", ".join(LM_OPTIONS[lm].__annotations__) or "nothing"
        raise ValueError(f"lm_options = {dict(options)} do not suit lm={lm}, which takes {wanted}") from error
