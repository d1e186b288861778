"""TRL: `trainer_state.json`, whose `log_history` has an entry every `logging_steps` steps.

An entry holds means over the steps since the one before; each of those steps gets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.foreign.log import (
    ForeignLog,
    StepSizes,
    accuracy,
    damaged,
    json_object,
    no_sizes,
    number,
    step_record,
)
from experiments.errors import UserError

_STATE = "trainer_state.json"


def read(folder: Path, sizes: StepSizes | None) -> ForeignLog:
    """Read the newest trainer state in an output folder. Raises UserError when there is none, or for damage.

    TRL has no seconds by stage. `step_time` is a step's, where the log has it; otherwise times are unknown.
    """
    states = [path for path in (folder / _STATE, *folder.glob(f"checkpoint-*/{_STATE}")) if path.is_file()]
    if not states:
        raise UserError(
            f"There is no {_STATE}.", str(folder), "name the run's output_dir, or a checkpoint of it"
        )
    if sizes is None:
        raise no_sizes("TRL", folder)
    path, state = max(
        ((path, json_object(path)) for path in states), key=lambda pair: number(pair[1], "global_step") or 0
    )
    history = state.get("log_history")
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise damaged(path, 1, "it has no log_history")
    records = _records(history, sizes)
    rates = [number(entry, "learning_rate") for entry in history]
    epochs = number(state, "num_train_epochs")
    return ForeignLog(
        tuple(records[step] for step in sorted(records)),
        (path,),
        max((rate for rate in rates if rate), default=None),
        None if epochs is None else int(epochs),
    )


def _records(history: list[dict[str, Any]], sizes: StepSizes) -> dict[int, dict[str, Any]]:
    records: dict[int, dict[str, Any]] = {}
    done = 0
    for entry in history:
        step = int(number(entry, "step") or 0)
        if "reward" in entry:
            for each in range(done + 1, step + 1):
                records[each] = _record(each, entry, sizes)
            done = max(done, step)
    for entry in history:
        validation = _accuracy(entry, "eval_rewards/")
        step = int(number(entry, "step") or 0)
        if validation is not None:
            records.setdefault(step, {"step": step})["val/accuracy"] = validation
    return {step: record for step, record in records.items() if step <= done}


def _record(step: int, entry: Mapping[str, Any], sizes: StepSizes) -> dict[str, Any]:
    return step_record(
        step,
        max(0, int((number(entry, "epoch") or 0.0) - 1e-9)),
        {"step": number(entry, "step_time")},
        {},
        sizes,
        number(entry, "completions/mean_length", "completion_length"),
        {
            "actor/entropy": number(entry, "entropy"),
            "actor/loss": number(entry, "loss"),
            "actor/kl": number(entry, "kl"),
            "actor/clipfrac": number(entry, "clip_ratio/region_mean", "clip_ratio"),
            "actor/grad_norm": number(entry, "grad_norm"),
            "actor/lr": number(entry, "learning_rate"),
            "reward/mean": number(entry, "reward"),
            "reward/accuracy": _accuracy(entry, "rewards/"),
        },
    )


def _accuracy(entry: Mapping[str, Any], prefix: str) -> float | None:
    """The mean of the reward function whose name speaks of accuracy."""
    for key in entry:
        if key.startswith(prefix) and "accuracy" in key and not key.endswith("/std"):
            return accuracy(entry, key)
    return None
