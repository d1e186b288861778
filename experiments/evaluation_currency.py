"""Whether a benchmark's results still stand for its present settings, questions and grader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from eval.datasets import files_of, load_questions
from eval.digests import result_digests, settings_digest

_COMPARED = ("data", "files", "prompt", "extractor")


def evaluation_is_current(results: Mapping[str, Any] | None, benchmark: Mapping[str, Any], seed: int) -> bool:
    """Whether `results` (of results.json; None without one) came from this benchmark config and run seed."""
    if results is None or results.get("seed") != seed:
        return False
    if results.get("settings_digest") != settings_digest(benchmark):
        return False
    present = _digests(
        benchmark["task"], json.dumps(benchmark["dataset"], sort_keys=True), benchmark["split"]
    )
    recorded = results.get("digests", {})
    return all(recorded.get(name) == present.get(name) for name in _COMPARED)


@cache
def _digests(task: str, dataset_config: str, split: str) -> dict[str, str]:
    """Digests of the questions and of the code that grades them; a study asks for the same few many times."""
    config = json.loads(dataset_config)
    questions = load_questions(config, split)
    files = files_of(config, split, questions)
    return result_digests(task, questions, files.digest if files else None, checkpoint_digest="")
