"""verl: the file logger's JSONL, one `{"step": N, "data": {flat keys}}` a step."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.foreign.log import ForeignLog, StepSizes, damaged, json_lines, no_sizes, number, step_record
from experiments.errors import UserError

_STAGES = {
    "gen": ("timing_s/gen", "timing_s/generate_sequences"),
    "reward": ("timing_s/reward",),
    "adv": ("timing_s/adv",),
    "old": ("timing_s/old_log_prob", "timing_s/old"),
    "ref": ("timing_s/ref", "timing_s/ref_log_prob"),
    "update_actor": ("timing_s/update_actor",),
}
"""Our stages and the names that verl has had for them."""


def read(folder: Path, sizes: StepSizes | None) -> ForeignLog:
    """Read a folder's only `*.jsonl`, or that file itself. Raises UserError for a log that can't be read.

    `step` is the sum of the work: verl's own contains validation (`testing`) and checkpoints.
    """
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl"))
    if len(paths) != 1:
        found = ", ".join(path.name for path in paths) or "none"
        raise UserError(f"There is not one *.jsonl, but {found}.", str(folder), "name the file itself")
    if sizes is None:
        raise no_sizes("verl", folder)
    by_step: dict[int, dict[str, Any]] = {}
    for line, record in json_lines(paths[0]):
        metrics = record.get("data")
        if not isinstance(metrics, dict):
            raise damaged(paths[0], line, "it has no `data`")
        by_step[record["step"]] = {**by_step.get(record["step"], {}), **metrics}
    records = [_record(step, by_step[step], sizes) for step in sorted(by_step)]
    rates = [number(metrics, "actor/lr") for metrics in by_step.values()]
    return ForeignLog(tuple(records), tuple(paths), next((rate for rate in rates if rate), None), None)


def _record(step: int, metrics: Mapping[str, Any], sizes: StepSizes) -> dict[str, Any]:
    accuracy = _validation(metrics)
    if step == 0:
        return {"step": 0, **({} if accuracy is None else {"val/accuracy": accuracy})}
    seconds = {stage: number(metrics, *keys) for stage, keys in _STAGES.items()}
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
            "actor/lr": number(metrics, "actor/lr"),
            "reward/mean": number(metrics, "critic/score/mean", "critic/rewards/mean"),
            "val/accuracy": accuracy,
        },
    )


def _validation(metrics: Mapping[str, Any]) -> float | None:
    """The mean accuracy over validation sets: `val-core/<set>/acc/mean@k`, in old versions a test score."""
    for first, middle in (
        ("val-core/", "/acc/mean@"),
        ("val-core/", "/reward/mean@"),
        ("val/test_score/", ""),
    ):
        values = [number(metrics, key) for key in metrics if key.startswith(first) and middle in key]
        known = [value for value in values if value is not None]
        if known:
            return statistics.fmean(known)
    return None
