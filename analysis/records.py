"""One run's records, read strictly: what is damaged or impossible is refused by file and line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.evaluation_records import Evaluation, check_one_checkpoint, checked_evaluation
from analysis.record_error import RecordError
from analysis.step_frames import StepError, is_number, read_step_frame
from experiments.errors import UserError
from experiments.plan import Cell
from experiments.run_directory import RunDirectory

if TYPE_CHECKING:
    from pandas import DataFrame

CONFIG_SCHEMA = 1
"""The version of `config.yaml`, and so of a run's other files, that this code reads."""

_NOT_STARTED = "not started"


@dataclass(frozen=True)
class RunRecord:
    """What one run left behind.

    states: of each planned stage; "not started" where nothing was tried. config: as resolved, empty before
    the run exists. steps: as `read_step_frame` has them, None unless training is done. evaluations: by
    benchmark, the finished ones. hardware: what the training ran on, "" when unknown. commit: of the
    code, or None. dirty: whether the code had changes that the commit lacks. gpus: of the machine that
    trained. data: what the training read, by split. imported: the trainer whose log the run was made from, ""
    for a run of this project.
    """

    run_id: str
    states: Mapping[str, str]
    config: Mapping[str, Any]
    steps: DataFrame | None
    evaluations: Mapping[str, Evaluation]
    hardware: str
    commit: str | None
    dirty: bool
    gpus: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
    imported: str = ""

    @property
    def trained(self) -> bool:
        return self.steps is not None

    @property
    def results(self) -> dict[str, Mapping[str, Any]]:
        """By benchmark, of finished evaluations."""
        return {name: each.results for name, each in self.evaluations.items()}


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
        return RunRecord(cell.run_id, dict.fromkeys(cell.stages, _NOT_STARTED), {}, None, {}, "", None, False)
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
    provenance = _checked_provenance(run)
    evaluations = {
        benchmark: checked_evaluation(run, benchmark, cell.seed)
        for stage in cell.stages
        if states[stage] == "done" and (benchmark := stage.removeprefix("evaluate-")) != stage
    }
    check_one_checkpoint(run, config, {name: each.results for name, each in evaluations.items()})
    return RunRecord(
        run_id=cell.run_id,
        states=states,
        config=config,
        steps=_checked_steps(run, config, provenance.get("steps"), clock_prefix)
        if states.get("train") == "done"
        else None,
        evaluations=evaluations,
        hardware=_hardware(provenance),
        commit=provenance.get("commit"),
        dirty=bool(provenance.get("dirty")),
        gpus=len(provenance["hardware"].get("gpus") or ()),
        data=provenance["data"],
        imported=str(provenance["imported"].get("from", "")),
    )


def _checked_provenance(run: RunDirectory) -> dict[str, Any]:
    """The provenance of a run, {} in place of the parts that it does not have."""
    where = _relative(run, str(run.provenance_path))
    provenance = run.provenance() or {}
    parts = {key: provenance.get(key) or {} for key in ("hardware", "data", "imported")}
    for key, value in parts.items():
        if not isinstance(value, dict):
            raise RecordError(where, f"{key} is {value!r}, not a mapping")
    gpus = parts["hardware"].get("gpus") or []
    if not isinstance(gpus, list) or not all(isinstance(gpu, str) for gpu in gpus):
        raise RecordError(where, f"hardware.gpus is {gpus!r}, not a list of names")
    steps = provenance.get("steps")
    if steps is not None and not is_number(steps):
        raise RecordError(where, f"steps is {steps!r}, not a number")
    return {**provenance, **parts}


def _checked_steps(
    run: RunDirectory, config: Mapping[str, Any], total: int | None, clock_prefix: str
) -> DataFrame:
    """The step log of a finished training, whole; `total` as in `_check_whole`."""
    log = _relative(run, str(run.steps_path))
    try:
        steps = read_step_frame(run.steps_path, clock_prefix)
    except StepError as error:
        raise RecordError(f"{log}, line {error.line}", error.reason) from None
    _check_whole(log, config, total, steps)
    return steps


def _check_whole(log: str, config: Mapping[str, Any], total: int | None, steps: DataFrame) -> None:
    """Refuse a log that ends early: training ends with its last step and, if asked for, a validation.

    total: the steps that the training set out to make, None when its provenance does not say.
    """
    where = f"{log}, line {len(steps)}"
    last = int(steps["step"].iloc[-1]) if len(steps) else 0
    if last == 0:
        raise RecordError(where, "training is done, but no step is recorded")
    if total is not None and last != total:
        raise RecordError(where, f"the log ends at step {last} of {total}")
    validated = "val/accuracy" in steps and not math.isnan(steps["val/accuracy"].iloc[-1])
    if config.get("training", {}).get("validate_every") and not validated:
        raise RecordError(where, f"the log ends at step {last}, without the last validation")


def _hardware(provenance: Mapping[str, Any]) -> str:
    """The hardware of a run in words; two runs with the same words may be compared in time."""
    hardware = provenance["hardware"]
    if not hardware:
        return ""
    gpus = hardware.get("gpus") or []
    counted = [f"{gpus.count(gpu)} × {gpu}" for gpu in sorted(set(gpus))]
    cpu = f"{hardware.get('cpu') or hardware.get('machine') or 'unknown CPU'}, {hardware.get('cores')} cores"
    return ", ".join([*counted, cpu])


def _relative(run: RunDirectory, where: str) -> str:
    """A place without the results root, so that a report says the same wherever it is made."""
    return where.removeprefix(f"{run.root}/")
