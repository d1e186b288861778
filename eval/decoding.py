"""From a decoding's settings to the generation arguments that lm-eval gives its models."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from eval.benchmark_settings import DecodingSettings


def generation_kwargs(
    decoding: DecodingSettings, max_gen_toks: int, until: Sequence[str], seed: int
) -> dict[str, Any]:
    """lm-eval's `generation_kwargs`: the full distribution at the temperature, or greedy.

    `until` is always given, since lm-eval would otherwise stop at its few-shot delimiter, a blank line, and
    so cut chains of thought; top_k and top_p are, since transformers would otherwise keep the 50 likeliest
    tokens. `seed` is read by the models of `eval.models` alone.
    """
    shared = {"max_gen_toks": max_gen_toks, "until": list(until), "seed": seed}
    if decoding.greedy:
        return {**shared, "do_sample": False, "temperature": 0.0}
    return {**shared, "do_sample": True, "temperature": decoding.temperature, "top_k": 0, "top_p": 1.0}


def derived_seed(seed: int, *purpose: str | int) -> int:
    """A seed in [0, 2**63) for one purpose, independent of those of other purposes and other seeds."""
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
