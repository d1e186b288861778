"""One run's records, read strictly: what is damaged or impossible is refused by file and line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.errors import UserError
from experiments.plan import Cell
from experiments.run_directory import RunDirectory

RESULTS_SCHEMA = 1
"""The version of `results.json` that this code reads."""

CONFIG_SCHEMA = 1
"""The version of `config.yaml`, and so of a run's other files, that this code reads."""

STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor")
"""The timed parts of a training step, in the order in which they run; `step` is their sum."""

OPTIMISATION = ("adv", "select", "old", "ref", "update_actor")
"""The stages of a step that follow generation and reward."""

_REQUIRED = ("step", "epoch", "time", "rollout/n", "actor/updates", "tokens/total")
_MEANS = ("select/kept_per_question_mean", "actor/entropy")
"""Required too, but null in a step that has nothing to average over."""

_TIMES = ("cpu_s/", "timing_s/")
"""Prefixes of seconds, which are null where the log of another trainer does not tell them."""

_NOT_STARTED = "not started"


def step_keys(clock_prefix: str) -> tuple[str, ...]:
    """The keys that every step's record must have for a study that counts this clock's seconds."""
    return (*_REQUIRED, *_MEANS, *(f"{clock_prefix}/{stage}" for stage in (*STAGES, "step")))


class RecordError(ValueError):
    """A run's record that can't be trusted. where: the file, and the line if one is at fault; reason: why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


@dataclass(frozen=True)
class RunRecord:
    """What one run left behind.

    states: of each planned stage; "not started" where nothing was tried. config: as resolved, empty before
    the run exists. steps: the step log's records, empty unless training is done. results: by benchmark, of
    finished evaluations. hardware: what the training ran on, "" when unknown. commit: of the code, or None.
    dirty: whether the code had changes that the commit lacks. gpus: of the machine that trained. data: what
    the training read, by split.
    """

    run_id: str
    states: Mapping[str, str]
    config: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    results: Mapping[str, Mapping[str, Any]]
    hardware: str
    commit: str | None
    dirty: bool
    gpus: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trained(self) -> bool:
        return bool(self.steps)


def read_run(root: Path, cell: Cell, clock_prefix: str) -> RunRecord:
    """Read the run of a cell. clock_prefix: of the seconds that the study counts, which every step must have.

    Raises RecordError for a record that is damaged, incomplete for a finished stage, or contradicts the plan.
    """
    run = RunDirectory(root / "runs" / cell.run_id)
    try:
        return _read(run, cell, clock_prefix)
    except UserError as error:
        raise RecordError(_relative(run, error.where), error.what) from None


def _read(run: RunDirectory, cell: Cell, clock_prefix: str) -> RunRecord:
    if not run.path.exists():
        return RunRecord(cell.run_id, dict.fromkeys(cell.stages, _NOT_STARTED), {}, (), {}, "", None, False)
    config = run.config()
    if config.get("schema_version") != CONFIG_SCHEMA:
        raise RecordError(
            _relative(run, str(run.config_path)),
            f"schema_version {config.get('schema_version')!r}, this version reads {CONFIG_SCHEMA}",
        )
    if config.get("seed") != cell.seed:
        raise RecordError(
            _relative(run, str(run.config_path)), f"seed {config.get('seed')!r}, but the plan has {cell.seed}"
        )
    status = run.status()
    states = {stage: status[stage].state if stage in status else _NOT_STARTED for stage in cell.stages}
    provenance = run.provenance() or {}
    return RunRecord(
        run_id=cell.run_id,
        states=states,
        config=config,
        steps=_checked_steps(run, config, provenance.get("steps"), clock_prefix)
        if states.get("train") == "done"
        else (),
        results={
            benchmark: _checked_results(run, benchmark)
            for stage in cell.stages
            if states[stage] == "done" and (benchmark := stage.removeprefix("evaluate-")) != stage
        },
        hardware=_hardware(provenance),
        commit=provenance.get("commit"),
        dirty=bool(provenance.get("dirty")),
        gpus=len((provenance.get("hardware") or {}).get("gpus") or ()),
        data=provenance.get("data") or {},
    )


def _checked_steps(
    run: RunDirectory, config: Mapping[str, Any], total: int | None, clock_prefix: str
) -> list[dict[str, Any]]:
    """The step log of a finished training: whole, finite, without gaps, time running forward."""
    steps = run.steps()
    required = step_keys(clock_prefix)
    log = _relative(run, str(run.steps_path))
    previous, time = 0, -math.inf
    for line, record in enumerate(steps, start=1):
        reason = _wrong_values(record, required if record["step"] > 0 else ())
        if not reason and record["step"] > 0:
            if record["step"] != previous + 1:
                reason = f"step {record['step']} follows step {previous}"
            elif record["time"] < time:
                reason = f"time goes back by {time - record['time']:.3g} s"
            previous, time = record["step"], record["time"]
        if reason:
            raise RecordError(f"{log}, line {line}", reason)
    _check_whole(run, config, total, steps)
    return steps


def _wrong_values(record: Mapping[str, Any], required: Sequence[str]) -> str:
    """What is wrong with the values of a step's record, "" when nothing is."""
    for key, value in record.items():
        if isinstance(value, float) and not math.isfinite(value):
            return f"{key} is {value}"
    null = {
        key for key, value in record.items() if value is None and (key in _MEANS or key.startswith(_TIMES))
    }
    negative = [key for key in record if key.startswith(_TIMES) and (record[key] or 0) < 0]
    if negative:
        return f"{negative[0]} is {record[negative[0]]}: the clock went backwards"
    absent = [key for key in required if not isinstance(record.get(key), int | float) and key not in null]
    if absent:
        return f"no number for {', '.join(absent)}"
    validation = record.get("val/accuracy", 0)
    if not isinstance(validation, int | float) or not 0 <= validation <= 1:
        return f"val/accuracy is {validation!r}, not within [0, 1]"
    return ""


def _check_whole(
    run: RunDirectory, config: Mapping[str, Any], total: int | None, steps: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse a log that ends early: training ends with its last step and, if asked for, a validation.

    total: the steps that the training set out to make, None when its provenance does not say.
    """
    where = f"{_relative(run, str(run.steps_path))}, line {len(steps)}"
    if not steps or steps[-1]["step"] == 0:
        raise RecordError(where, "training is done, but no step is recorded")
    last, training = steps[-1], config.get("training", {})
    if total is not None and last["step"] != total:
        raise RecordError(where, f"the log ends at step {last['step']} of {total}")
    if training.get("validate_every") and "val/accuracy" not in last:
        raise RecordError(where, f"the log ends at step {last['step']}, without the last validation")


def _checked_results(run: RunDirectory, benchmark: str) -> dict[str, Any]:
    where = _relative(run, str(run.results_path(benchmark)))
    results = run.results(benchmark)
    if results is None:
        raise RecordError(where, "the evaluation is done, but its results are missing")
    if results.get("schema") != RESULTS_SCHEMA:
        raise RecordError(where, f"schema {results.get('schema')!r}, this version reads {RESULTS_SCHEMA}")
    decodings = results.get("decodings")
    if not isinstance(decodings, dict) or not decodings:
        raise RecordError(where, "no decodings")
    for name, decoding in decodings.items():
        metrics = decoding.get("metrics") if isinstance(decoding, dict) else None
        if not isinstance(metrics, dict) or "accuracy" not in metrics:
            raise RecordError(where, f"decodings.{name}: no metrics.accuracy")
        if not all(isinstance(decoding.get(key), int | float) for key in ("temperature", "samples")):
            raise RecordError(where, f"decodings.{name}: no temperature or samples")
        for metric, value in metrics.items():
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise RecordError(where, f"decodings.{name}.metrics.{metric} is {value!r}, not within [0, 1]")
    return results


def _hardware(provenance: Mapping[str, Any]) -> str:
    """The hardware of a run in words; two runs with the same words may be compared in time."""
    hardware = provenance.get("hardware")
    if not isinstance(hardware, Mapping):
        return ""
    gpus = hardware.get("gpus") or []
    counted = [f"{gpus.count(gpu)} × {gpu}" for gpu in sorted(set(gpus))]
    cpu = f"{hardware.get('cpu') or hardware.get('machine') or 'unknown CPU'}, {hardware.get('cores')} cores"
    return ", ".join([*counted, cpu])


def _relative(run: RunDirectory, where: str) -> str:
    """A place without the results root, so that a report says the same wherever it is made."""
    return where.removeprefix(f"{run.root}/")
