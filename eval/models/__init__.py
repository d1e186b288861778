"""lm-eval models: `lm` in a benchmark's settings names one; each is imported when it is used.

A model is an `eval.models.batched.BatchedModel` that is built from (checkpoint, settings, before_batch),
reads `seed` in a request's generation arguments, and returns `eval.models.response.Response`s from
`generate_until`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval.benchmark_settings import BenchmarkSettings
from eval.checkpoint import CheckpointError, check_checkpoint, checkpoint_digest
from eval.model_options import WITHOUT_CHECKPOINT, OpenaiOptions, ReplayOptions, build_options

MODELS: dict[str, str] = {
    "hf": "eval.models.hf:HuggingFace",
    "hf-multimodal": "eval.models.hf_multimodal:HuggingFaceMultimodal",
    "openai": "eval.models.openai:Openai",
    "reference": "eval.models.reference:Reference",
    "replay": "eval.models.replay:Replay",
    "vllm": "eval.models.vllm:Vllm",
    "vllm-vlm": "eval.models.vllm:Vllm",
}


def load_model(checkpoint: Path | None, settings: BenchmarkSettings, before_batch: Callable[[], None]) -> Any:
    """The lm-eval model that a benchmark asks for, with the checkpoint's weights if it has any.

    before_batch: called before every batch; what it raises ends the generation.
    Raises ValueError for an unknown `lm`.
    """
    if settings.lm not in MODELS:
        raise ValueError(f"unknown lm {settings.lm!r}; known: {', '.join(sorted(MODELS))}")
    module, _, name = MODELS[settings.lm].partition(":")
    model = getattr(importlib.import_module(module), name)
    return model(checkpoint, settings, before_batch)


def model_digest(checkpoint: Path | None, settings: BenchmarkSettings) -> str:
    """sha256 (hex) of what answers: the folder of weights, the server and its model, or the recorded outputs.

    Raises CheckpointError, before anything heavy is imported, when it is not there or not whole.
    """
    if settings.lm not in WITHOUT_CHECKPOINT:
        if checkpoint is None:
            raise CheckpointError(f"lm={settings.lm} needs a checkpoint: name the folder of a trained policy")
        check_checkpoint(checkpoint)
        return checkpoint_digest(checkpoint)
    options = build_options(settings.lm, settings.lm_options)
    if isinstance(options, OpenaiOptions):
        return hashlib.sha256(json.dumps([options.url, options.model]).encode()).hexdigest()
    assert isinstance(options, ReplayOptions)
    outputs = Path(options.outputs).expanduser()
    if not outputs.is_file():
        raise CheckpointError(f"there are no recorded outputs at {outputs}; set lm_options.outputs to a file")
    return hashlib.sha256(outputs.read_bytes()).hexdigest()
