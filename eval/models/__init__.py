"""lm-eval models: `lm` in a benchmark's settings names one; each is imported when it is used.

A model is an `lm_eval.api.model.LM` that is built from (checkpoint, batch_size, device, dtype,
before_batch), reads `seed` in a request's generation arguments, and returns
`eval.models.response.Response`s from `generate_until`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval.benchmark_settings import BenchmarkSettings

MODELS: dict[str, str] = {
    "hf": "eval.models.hf:HuggingFace",
    "reference": "eval.models.reference:Reference",
}


def load_model(checkpoint: Path, settings: BenchmarkSettings, before_batch: Callable[[], None]) -> Any:
    """The lm-eval model that a benchmark asks for, with the checkpoint's weights.

    before_batch: called before every batch; what it raises ends the generation.
    Raises ValueError for an unknown `lm`.
    """
    if settings.lm not in MODELS:
        raise ValueError(f"unknown lm {settings.lm!r}; known: {', '.join(sorted(MODELS))}")
    module, _, name = MODELS[settings.lm].partition(":")
    model = getattr(importlib.import_module(module), name)
    return model(checkpoint, settings.batch_size, settings.device, settings.dtype, before_batch)
