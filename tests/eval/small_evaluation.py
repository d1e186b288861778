"""Evaluates the tiny policy of these tests, and reads what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from laptop_benchmark import small_benchmark

from eval.evaluate import evaluate
from eval.results import read_samples

MODELS = ("reference", "hf")
"""lm-eval models that generate text here."""


def run(
    policy: Path,
    output: Path,
    benchmark: dict[str, Any] | None = None,
    *,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[dict[str, Any], list[str]]:
    """(results, announced lines)."""
    said: list[str] = []
    results = evaluate(
        checkpoint=policy,
        benchmark=benchmark or small_benchmark(),
        output=output,
        seed=seed,
        stop_requested=stop,
        announce=said.append,
    )
    return results, said


def rows(output: Path) -> list[dict[str, Any]]:
    table, _ = read_samples(output / "samples.parquet")
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def without_seconds(results: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in results.items() if key != "seconds"}
