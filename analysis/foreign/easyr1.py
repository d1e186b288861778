"""EasyR1: `experiment_log.jsonl`, one nested object a step, and `experiment_config.json` beside it.

What its console showed will do as well, see `easyr1_console`. A restart begins the log anew, so earlier ones
that were kept (`experiment_log*.jsonl`) are read too; of a step that several have, the newest file's counts.
The last step has two entries; the second adds to the first. Of a run that this project's plug-in made, every
number is there, and nothing needs to be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.foreign.easyr1_console import read_console
from analysis.foreign.log import (
    WHOLE_STEP,
    Entry,
    ForeignLog,
    StepSizes,
    accuracy,
    is_json_lines,
    json_lines,
    json_object,
    metrics_by_step,
    no_sizes,
    number,
    step_record,
)
from experiments.errors import UserError
from experiments.identity import flattened

_CONFIG = "experiment_config.json"
_LOG = "experiment_log.jsonl"
_OWN = "fastrl/"
"""Prefix of what this project's plug-in reports through EasyR1's metrics."""

OwnRecord = Callable[[Mapping[str, Any], int, float], dict[str, Any]]
"""The record of a step from the flat metrics that the plug-in logged, given the step and its time."""


def read(folder: Path, sizes: StepSizes | None, own_record: OwnRecord | None = None) -> ForeignLog:
    """Read a checkpoint folder of EasyR1, or a file that its console was kept in.

    own_record: reads the steps of a run with this project's plug-in; others are read by EasyR1's own keys.

    Seconds are normalised: rewards are computed in the background, so `reward` is the time to ask for them
    and the wait for them lies in `adv`; both are reward here. `step` is the sum of the work, without
    validation and checkpoints, which EasyR1's own contains. Raises UserError for logs that are missing or
    damaged.
    """
    logs, config, entries = _logged(folder)
    sizes = sizes or _sizes(config)
    by_step = metrics_by_step(entries)
    plugged = any(key.startswith(_OWN) for metrics in by_step.values() for key in metrics)
    read_own = own_record if plugged else None
    epochs = number(config, "trainer.total_epochs")
    last = max(by_step, default=0)
    if read_own is not None:
        records = [_own_record(step, by_step[step], read_own, folder) for step in by_step]
    elif sizes is None:
        raise no_sizes("EasyR1 without its configuration", folder)
    else:
        records = [_record(step, by_step[step], sizes, last, int(epochs or 1)) for step in by_step]
    return ForeignLog(
        tuple(records),
        logs,
        number(config, "worker.actor.optim.lr"),
        None if epochs is None else int(epochs),
    )


def _logged(folder: Path) -> tuple[tuple[Path, ...], Mapping[str, Any], list[Entry]]:
    """The log's files, the configuration by dotted path (empty when unknown), and what is logged."""
    if folder.is_file() and not is_json_lines(folder):
        console = read_console(folder)
        return (folder,), console.config, list(console.entries)
    beside = folder.parent if folder.is_file() else folder
    logs = [folder] if folder.is_file() else list(folder.glob("experiment_log*.jsonl"))
    logs.sort(key=_age)
    if not logs:
        raise UserError(
            "There is no experiment_log.jsonl.",
            str(folder),
            "name the run's save_checkpoint_path, or the file that its console was kept in",
        )
    config = flattened(json_object(beside / _CONFIG)) if (beside / _CONFIG).is_file() else {}
    return tuple(logs), config, [entry for path in logs for entry in _json_entries(path)]


def _age(log: Path) -> tuple[bool, int, float, str]:
    """Sorts logs from the oldest on: the plug-in numbers those that it keeps, and the present one has the
    plain name. Times of change alone would not do, for a copy may have others."""
    number = log.stem.rpartition("_")[2]
    return log.name == _LOG, int(number) if number.isdecimal() else 0, log.stat().st_mtime, log.name


def _json_entries(path: Path) -> Iterator[Entry]:
    for line, record in json_lines(path):
        yield Entry(line, record.pop("step"), _slashed(record))


def _sizes(config: Mapping[str, Any]) -> StepSizes | None:
    n, questions = number(config, "worker.rollout.n"), number(config, "data.rollout_batch_size")
    batch = number(config, "worker.actor.global_batch_size")
    passes = number(config, "worker.actor.ppo_epochs") or 1
    if not n or not questions or not batch:
        return None
    return StepSizes(int(n), int(questions), max(1, round(questions / batch * passes)))


def _record(
    step: int, metrics: Mapping[str, Any], sizes: StepSizes, last: int, epochs: int
) -> dict[str, Any]:
    validation = accuracy(metrics, "val/accuracy_reward", "val/accuracy")
    if step == 0:
        return {"step": 0, **({} if validation is None else {"val/accuracy": validation})}
    seconds = {name: number(metrics, f"timing_s/{name}") for name in ("gen", "old", "ref", "update_actor")}
    waited = [number(metrics, f"timing_s/{name}") for name in ("reward", "adv")]
    known = [value for value in waited if value is not None]
    seconds |= {"reward": sum(known) if known else None, "adv": 0.0, "select": 0.0}
    seconds["ref"] = seconds["ref"] or 0.0  # absent without a KL term
    besides = {name: number(metrics, f"timing_s/{name}") or 0.0 for name in ("validation", "save_checkpoint")}
    return step_record(
        step,
        (step - 1) * epochs // last,
        seconds,
        besides,
        sizes,
        number(metrics, "response_length/mean"),
        {
            "actor/entropy": number(metrics, "actor/entropy_loss", "actor/entropy"),
            "actor/loss": number(metrics, "actor/pg_loss"),
            "actor/kl": number(metrics, "actor/kl_loss", "actor/ppo_kl"),
            "actor/grad_norm": number(metrics, "actor/grad_norm"),
            "actor/lr": number(metrics, "actor/lr"),
            "reward/mean": number(metrics, "reward/overall", "critic/score/mean"),
            "reward/accuracy": number(metrics, "reward/accuracy"),
            "reward/format": number(metrics, "reward/format"),
            "val/accuracy": validation,
        },
    )


def _own_record(step: int, metrics: Mapping[str, Any], read_own: OwnRecord, folder: Path) -> dict[str, Any]:
    """A record of a run with this project's plug-in, without its time."""
    if WHOLE_STEP not in metrics:
        validation = accuracy(metrics, "val/accuracy_reward", "val/accuracy")
        return {"step": step, **({} if validation is None else {"val/accuracy": validation})}
    try:
        return {key: value for key, value in read_own(metrics, step, 0.0).items() if key != "time"}
    except KeyError as error:
        raise UserError(
            f"Step {step} has no {error.args[0]}.", str(folder), "it is no log of this version's plug-in", 1
        ) from None


def _slashed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Nested metrics by keys with slashes."""
    return {key.replace(".", "/"): value for key, value in flattened(record).items()}
