"""What a run is called in MLflow: metrics, parameters and tags, from the records of its directory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from experiments.identity import flattened, identity_part
from experiments.plan import Cell

RUN_ID_TAG = "run_id"
"""The tag by which a run is found again."""

TRACKED_TAG = "fastrl.tracked"
"""The tag that says what MLflow has of a run."""

STUDY_TAG = "fastrl.study"
"""The tag of the run that stands for a whole study, the parent of its runs."""

PARENT_TAG = "mlflow.parentRunId"

SOURCE = "measured"

LONGEST_PARAMETER = 6000
"""MLflow's limit on a parameter's value, in characters; config.yaml, an artefact, has the whole value."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_/]+")
_STEP_KEYS_WITHOUT_METRIC = ("step", "time")
_RATES = ("truncation_rate", "extraction_failure_rate", "format_rate", "mean_tokens")


def metric_name(*parts: str) -> str:
    """Parts joined by `/`, with `_` for whatever is neither a letter, a digit, `_` nor `/`."""
    return _NOT_IN_A_NAME.sub("_", "/".join(parts))


def step_metrics(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of one record of `steps.jsonl`, by metric name; texts and missing values are no metrics."""
    return _by_name(((key,), value) for key, value in record.items() if key not in _STEP_KEYS_WITHOUT_METRIC)


def evaluation_metrics(results: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a `results.json`: `eval/<benchmark>/<decoding>/<metric>`."""
    return _by_name(
        (("eval", results["benchmark"], decoding, metric), value)
        for decoding, entry in results["decodings"].items()
        for metric, value in {**entry["metrics"], **{rate: entry.get(rate) for rate in _RATES}}.items()
    )


def parameters(config: Mapping[str, Any]) -> dict[str, str]:
    """The identity part of a resolved config by dotted key: what can never change for a run id."""
    return {
        key: text if len(text) <= LONGEST_PARAMETER else f"{text[: LONGEST_PARAMETER - 3]}..."
        for key, text in ((key, str(value)) for key, value in flattened(identity_part(config)).items())
    }


def tags(cell: Cell, commit: str | None, imported: str) -> dict[str, str]:
    """What runs are searched and grouped by, and the two tags that MLflow has columns for.

    commit: of the code that trained, None when unknown. imported: the trainer whose log the run was made
    from, "" for a run of this project.
    """
    values = {
        RUN_ID_TAG: cell.run_id,
        "arm": cell.arm,
        "label": cell.label,
        "group": cell.group,
        "method": cell.method,
        "model": cell.model,
        "dataset": cell.dataset,
        "engine": cell.engine,
        "seed": str(cell.seed),
        "tau": None if cell.tau is None else str(cell.tau),
        "git_commit": commit,
        "source": f"imported from {imported}" if imported else SOURCE,
        "mlflow.source.name": "fastrl",
        "mlflow.source.git.commit": commit,
    }
    return {key: value for key, value in values.items() if value is not None}


def _by_name(values: Iterable[tuple[tuple[str, ...], Any]]) -> dict[str, float]:
    """Raises ValueError when two keys have the same metric name, or a number is NaN or infinite."""
    metrics: dict[str, float] = {}
    for parts, value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        name = metric_name(*parts)
        if name in metrics:
            raise ValueError(f"{'/'.join(parts)} and another key have one metric name, {name}")
        if not math.isfinite(value):
            raise ValueError(f"{'/'.join(parts)} is {value}")
        metrics[name] = float(value)
    return metrics
