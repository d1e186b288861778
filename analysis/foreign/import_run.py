"""A foreign log into the results folder: a run directory, and its cell in a study's plan."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from analysis.foreign.log import ForeignLog
from analysis.step_frames import StepError, check_records
from experiments.atomic_files import write_file, write_json
from experiments.errors import UserError
from experiments.identity import run_id
from experiments.plan import Cell, Plan, ReportSettings, plan_path, read_plan, write_plan
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus

_STUDY = Path(__file__).with_name("study.yaml")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")
_GPUS = re.compile(r"(\d+)\s*[x×]\s*(.+)")


@dataclass(frozen=True)
class ImportedRun:
    """What the user says of a foreign run; hardware: such as "4 x H20", "" when unknown."""

    study: str
    label: str
    method: str
    model: str
    dataset: str
    seed: int
    tau: float | None
    hardware: str


def import_run(root: Path, trainer: str, run: ImportedRun, log: ForeignLog) -> Path:
    """Write the run and add it to the study's plan, made on first use; returns the run's folder.

    The same log gives the same run; another log of the same label and seed takes its place in the plan.
    Raises UserError for a name that can't be part of a path, hardware that is not understood, a log that is
    empty or that a report would refuse, and when the disk is full.
    """
    for kind in ("study", "method", "model", "dataset"):
        if not _NAME.fullmatch(getattr(run, kind)):
            raise UserError(
                f"{kind}={getattr(run, kind)!r} is no name.", "command line", "use letters, digits, _ and ."
            )
    trained = [record for record in log.steps if record["step"] > 0]
    if not trained:
        raise UserError(
            "The log has no training step.",
            ", ".join(map(str, log.files)),
            'name the log of a run that trained, in verl and EasyR1 with trainer.logger=["console","file"]',
            1,
        )
    hardware = _hardware(run.hardware)
    config = _config(trainer, run, log, trained[0])
    identity = run_id(config)
    folder = root / "runs" / identity
    records = _timed(log.steps, max(path.stat().st_mtime for path in log.files))
    try:
        check_records(records, "timing_s")
    except StepError as error:
        step = records[error.line - 1]["step"]
        raise UserError(
            f"Step {step} of the log can't be used: {error.reason}.",
            ", ".join(map(str, log.files)),
            "mend the log, or leave the step and those after it out",
            1,
        ) from None
    write_file(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
    write_file(
        folder / "steps.jsonl",
        "".join(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records),
    )
    write_json(
        folder / "provenance.json", _provenance(trainer, log, trained[-1]["step"], run.model, hardware)
    )
    ended = records[-1].get("time", 0.0)
    status = StageStatus("done", 1, ended, ended, socket.gethostname(), 0, None, None)
    write_json(RunDirectory(folder).status_path, {"train": asdict(status)})
    _add_to_plan(root, trainer, run, identity)
    return folder


def _config(trainer: str, run: ImportedRun, log: ForeignLog, first: Mapping[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in log.files)).hexdigest()
    return {
        "schema_version": 1,
        "method": {"name": run.method, "label": run.label, "selector": {"tau": run.tau}},
        "model": {"name": run.model, "label": run.model},
        "dataset": {"name": run.dataset, "label": run.dataset},
        "training": {
            "epochs": log.epochs,
            "questions_per_step": first["rollout/questions"],
            "learning_rate": log.learning_rate,
            "updates": first["actor/updates"],
            "update_mode": "mini_batch",
        },
        "engine": {"name": trainer, "imported_log": digest},
        "seed": run.seed,
        "benchmarks": {},
    }


def _timed(records: Sequence[Mapping[str, Any]], ended: float) -> list[dict[str, Any]]:
    """The records with the time at which each step ended, counted back from the log's last change."""
    seconds = [record.get("timing_s/step") or 0.0 for record in records]
    besides = [
        (record.get("timing_s/validation") or 0.0) + (record.get("timing_s/save_checkpoint") or 0.0)
        for record in records
    ]
    time = ended - sum(seconds) - sum(besides)
    timed = []
    for record, own, other in zip(records, seconds, besides, strict=True):
        time += own + other
        timed.append({**record, "time": time})
    return timed


def _provenance(
    trainer: str, log: ForeignLog, steps: int, policy: str, hardware: Mapping[str, Any] | None
) -> dict[str, Any]:
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in log.files}
    return {
        "commit": None,
        "dirty": False,
        "packages": {},
        **({"hardware": hardware} if hardware else {}),
        "policy": policy,
        "steps": steps,
        "data": {},
        "attempts": [],
        "imported": {"from": trainer, "files": files},
    }


def _hardware(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    found = _GPUS.fullmatch(text.strip())
    if found is None:
        raise UserError(f'hardware="{text}" is not understood.', "command line", 'write hardware="4 x H20"')
    return {"gpus": [found[2].strip()] * int(found[1]), "cpu": "CPU not recorded", "cores": "unknown"}


def _add_to_plan(root: Path, trainer: str, run: ImportedRun, identity: str) -> None:
    settings = yaml.safe_load(_STUDY.read_text(encoding="utf-8"))
    arm = hashlib.sha256("\n".join((run.label, run.method, run.model, run.dataset)).encode()).hexdigest()
    cell = Cell(
        run_id=identity,
        arm=f"{run.method}-{arm[:10]}",
        label=run.label,
        group="main",
        groups=("main",),
        seed=run.seed,
        method=run.method,
        model=run.model,
        dataset=run.dataset,
        engine=trainer,
        tau=run.tau,
        overrides=(f"imported from {trainer}", f"seed={run.seed}"),
        stages=("train",),
    )
    if plan_path(root, run.study).is_file():
        plan = read_plan(root, run.study)
    else:
        report: dict[str, Any] = {
            key: tuple(each) if isinstance(each, list) else each for key, each in settings["report"].items()
        }
        plan = Plan(
            study=run.study,
            title=settings["title"],
            baseline=run.label,
            clock=settings["clock"],
            commit=None,
            created=0.0,
            cells=(),
            report=ReportSettings(**report),
        )
    others = tuple(each for each in plan.cells if (each.arm, each.seed) != (cell.arm, cell.seed))
    write_plan(root, replace(plan, cells=(*others, cell)))
