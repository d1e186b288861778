"""verl: the file logger's JSONL, one `{"step": N, "data": {flat keys}}` a step, or what its console showed.

The console has a line a step, `step:N - key:number - key:number`, with three decimals before verl 0.5.
Formats and keys are those of verl 0.4.1 to 0.7.0, whose file logger came with 0.6 (`verl/utils/tracking.py`,
`verl/utils/logger/aggregate_logger.py`, `verl/trainer/ppo/ray_trainer.py`).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.foreign.console import console_lines, printed_number
from analysis.foreign.log import (
    Entry,
    ForeignLog,
    StepSizes,
    accuracy,
    damaged,
    is_json_lines,
    json_lines,
    metrics_by_step,
    no_sizes,
    number,
    step_record,
)
from experiments.errors import UserError

_STAGES = {
    "gen": ("timing_s/gen", "timing_s/gen_max", "timing_s/update_weights"),
    "reward": ("timing_s/reward",),
    "adv": ("timing_s/adv", "timing_s/values"),
    "old": ("timing_s/old_log_prob",),
    "ref": ("timing_s/ref",),
    "update_actor": ("timing_s/update_actor", "timing_s/update_critic"),
}
"""What verl times within each of our stages. Handing the weights to the sampler was a part of `gen` once."""

_STEP = re.compile(r"(?:^|\s)step:(\d+) - (.*)")
_PATTERNS = ("*.jsonl", "*.log", "*.txt", "*.out")


def read(folder: Path, sizes: StepSizes | None) -> ForeignLog:
    """Read a folder's only `*.jsonl`, else its only log of a console, or a file of either kind itself.

    `step` is the sum of the work: in old versions verl's own contains validation (`testing`) and checkpoints.
    Raises UserError for a log that can't be read.
    """
    path = _log_file(folder)
    if sizes is None:
        raise no_sizes("verl", folder)
    by_step = metrics_by_step(_json_entries(path) if is_json_lines(path) else _console_entries(path))
    records = [_record(step, metrics, sizes) for step, metrics in by_step.items()]
    rates = [number(metrics, "actor/lr") for metrics in by_step.values()]
    return ForeignLog(tuple(records), (path,), next((rate for rate in rates if rate), None), None)


def _log_file(folder: Path) -> Path:
    if folder.is_file():
        return folder
    for pattern in _PATTERNS:
        paths = sorted(folder.glob(pattern))
        if len(paths) == 1:
            return paths[0]
        if paths:
            found = ", ".join(path.name for path in paths)
            raise UserError(f"There is not one {pattern}, but {found}.", str(folder), "name the file itself")
    raise UserError(f"There is no {' or '.join(_PATTERNS)}.", str(folder), "name the file itself")


def _json_entries(path: Path) -> Iterator[Entry]:
    for line, record in json_lines(path):
        metrics = record.get("data")
        if not isinstance(metrics, dict):
            raise damaged(path, line, "it has no `data`")
        yield Entry(line, record["step"], metrics)


def _console_entries(path: Path) -> Iterator[Entry]:
    """The steps among all that a console showed. A line of a step with a part that is none is damaged."""
    for line in console_lines(path):
        found = _STEP.search(line.text)
        if found is None:
            continue
        metrics: dict[str, float] = {}
        wrong = []
        for part in found[2].split(" - "):
            key, _, text = part.strip().rpartition(":")
            value = printed_number(text)
            if key and value is not None:
                metrics[key] = value
            elif text not in ("True", "False"):
                wrong.append(part)
        if not any("/" in key for key in metrics):
            continue  # a response may speak of steps too
        if wrong:
            raise damaged(path, line.number, f'"{wrong[0][:60]}" is no key with a number')
        yield Entry(line.number, int(found[1]), metrics)


def _record(step: int, metrics: Mapping[str, Any], sizes: StepSizes) -> dict[str, Any]:
    validation = _validation(metrics)
    if step == 0:
        return {"step": 0, **({} if validation is None else {"val/accuracy": validation})}
    seconds = {stage: _sum(metrics, keys) for stage, keys in _STAGES.items()}
    seconds |= {"select": 0.0, "ref": seconds["ref"] or 0.0, "reward": seconds["reward"] or 0.0}
    besides = {
        "validation": number(metrics, "timing_s/testing") or 0.0,
        "save_checkpoint": number(metrics, "timing_s/save_checkpoint") or 0.0,
    }
    return step_record(
        step,
        int(number(metrics, "training/epoch") or 0),
        seconds,
        besides,
        sizes,
        number(metrics, "response_length/mean"),
        {
            "actor/entropy": number(metrics, "actor/entropy", "actor/entropy_loss"),
            "actor/loss": number(metrics, "actor/pg_loss"),
            "actor/clipfrac": number(metrics, "actor/pg_clipfrac"),
            "actor/kl": number(metrics, "actor/kl_loss", "actor/ppo_kl"),
            "actor/grad_norm": number(metrics, "actor/grad_norm"),
            "actor/lr": number(metrics, "actor/lr") or None,  # 0.000 is one that three decimals don't show
            "reward/mean": number(metrics, "critic/score/mean", "critic/rewards/mean"),
            "val/accuracy": validation,
        },
    )


def _sum(metrics: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    """The sum of those keys that are there, None when the first is not."""
    values = [number(metrics, key) for key in keys]
    return None if values[0] is None else sum(value for value in values if value is not None)


def _validation(metrics: Mapping[str, Any]) -> float | None:
    """The mean accuracy over validation sets: `val-core/<set>/acc/mean@k`, in old versions a test score."""
    for first, middle in (
        ("val-core/", "/acc/mean@"),
        ("val-core/", "/reward/mean@"),
        ("val/test_score/", ""),
    ):
        values = [accuracy(metrics, key) for key in metrics if key.startswith(first) and middle in key]
        known = [value for value in values if value is not None]
        if known:
            return statistics.fmean(known)
    return None
