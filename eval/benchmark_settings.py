"""What a benchmark config holds (`experiments/conf/benchmark/*.yaml`). Imports nothing heavy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Discriminator

from eval.datasets.settings import BenchmarkDataSettings
from eval.model_options import build_options

_NAME = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True)
class DecodingSettings:
    """One way of generating: `samples` responses per question, drawn at `temperature`; 0 is greedy."""

    temperature: float
    samples: int

    def __post_init__(self) -> None:
        if not math.isfinite(self.temperature) or self.temperature < 0:
            raise ValueError(f"temperature = {self.temperature} must be 0 (greedy) or more")
        if self.samples < 1 or (self.temperature == 0 and self.samples != 1):
            raise ValueError(
                f"samples = {self.samples} at temperature {self.temperature}: take at least one, and one "
                "when decoding is greedy, since all would be the same"
            )

    @property
    def greedy(self) -> bool:
        return self.temperature == 0


@dataclass(frozen=True)
class IntervalSettings:
    """Question-bootstrap interval of a metric: its level in (0, 1) and the number of resamples."""

    level: float
    resamples: int

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0 or self.resamples < 1:
            raise ValueError(
                f"interval.level = {self.level} must lie between 0 and 1, "
                f"interval.resamples = {self.resamples} be at least 1"
            )


@dataclass(frozen=True)
class BenchmarkSettings:
    """A benchmark: which questions, which lm-eval task, how responses are generated, and what is reported.

    name: its folder in a run, its key in configs. task: an lm-eval task under eval/tasks. dataset, split:
    the questions. lm, lm_options: the lm-eval model (see `eval.models`) and what it takes. chat_template:
    whether a prompt becomes a user's message in the checkpoint's chat template; a server applies its own
    anyhow. batch_size: responses generated at once, and kept on disk together.
    max_gen_toks: token limit of a response, end-of-sequence token included. until: strings that end a
    response and are cut off it; empty for none but the end-of-sequence token. decodings: by name. pass_k:
    the k of pass@k. truncation_alarm: share of responses cut at the limit above which the result is
    announced as doubtful.
    """

    name: str
    label: str
    task: str
    dataset: Annotated[BenchmarkDataSettings, Discriminator("source")]
    split: str
    lm: Literal["hf", "hf-multimodal", "openai", "reference", "replay", "vllm", "vllm-vlm"]
    lm_options: dict[str, Any]
    chat_template: bool
    batch_size: int
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    max_gen_toks: int
    until: tuple[str, ...]
    decodings: dict[str, DecodingSettings]
    pass_k: tuple[int, ...]
    interval: IntervalSettings
    truncation_alarm: float

    def __post_init__(self) -> None:
        for name in (self.name, *self.decodings):
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} names files and metrics: use lower-case letters, digits and underscores alone"
                )
        build_options(self.lm, self.lm_options)
        if not self.decodings:
            raise ValueError(f"benchmark {self.name}: decodings is empty; name at least one")
        if self.batch_size < 1 or self.max_gen_toks < 1:
            raise ValueError(
                f"benchmark {self.name}: batch_size = {self.batch_size} and "
                f"max_gen_toks = {self.max_gen_toks} must be at least 1"
            )
        sampled = {name: way.samples for name, way in self.decodings.items() if not way.greedy}
        for name, samples in sampled.items():
            if any(not 1 <= k <= samples for k in self.pass_k):
                raise ValueError(
                    f"benchmark {self.name}: pass_k = {list(self.pass_k)} needs each k between 1 and the "
                    f"{samples} samples of decodings.{name}; raise samples or drop the larger k"
                )

    @classmethod
    def from_mapping(cls, benchmark: Mapping[str, Any]) -> BenchmarkSettings:
        """From a plain config. Raises ValueError (of pydantic) naming the missing or ill-typed key."""
        from pydantic import TypeAdapter

        settings: BenchmarkSettings = TypeAdapter(cls).validate_python(dict(benchmark))
        return settings
