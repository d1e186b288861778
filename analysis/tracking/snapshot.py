"""A run as its directory shows it now: its state, times, records, and digests by which changes are found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from experiments.locks import live_holder
from experiments.plan import Cell
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus

RunState = Literal["SCHEDULED", "RUNNING", "FINISHED", "FAILED", "KILLED"]
"""A run's state in MLflow's words."""

OVER: tuple[RunState, ...] = ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True)
class Tracked:
    """What MLflow has of a run; kept there as a tag.

    steps: how many records. steps_digest: of those records. artefacts: a digest of each file, by its path in
    the run directory. label, group: the study's own words for the cell, which it may change.
    """

    state: RunState
    steps: int
    steps_digest: str
    artefacts: Mapping[str, str]
    label: str
    group: str

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Tracked | None:
        """What the tag says; None when there is none or another version wrote it: all is brought in again."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True)
class Snapshot:
    """A run of a study.

    commit: of the code that trained it, None when unknown. imported: as `names.tags` wants it. started,
    ended: unix seconds of the first attempt and of the last change of state. tracked: what MLflow has once
    the run has been brought in.
    """

    cell: Cell
    run: RunDirectory
    records: Sequence[Mapping[str, Any]]
    commit: str | None
    imported: str
    started: float
    ended: float
    tracked: Tracked

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that have results."""
        return tuple(name for name in _benchmarks(self.cell) if _results_name(name) in self.tracked.artefacts)


def take_snapshot(run: RunDirectory, cell: Cell) -> Snapshot | None:
    """Read a run; None when no stage of it has been tried. Raises UserError for a damaged file."""
    entries = {stage: entry for stage, entry in run.status().items() if stage in cell.stages}
    if not entries:
        return None
    records = run.steps()
    provenance = run.provenance() or {}
    updates = [entry.updated for entry in entries.values()]
    return Snapshot(
        cell=cell,
        run=run,
        records=records,
        commit=provenance.get("commit"),
        imported=str((provenance.get("imported") or {}).get("from", "")),
        started=min([attempt["time"] for attempt in provenance.get("attempts", [])] + updates),
        ended=max(updates),
        tracked=Tracked(
            state=run_state(run, cell, entries),
            steps=len(records),
            steps_digest=records_digest(records),
            artefacts=_artefacts(run, cell),
            label=cell.label,
            group=cell.group,
        ),
    )


def run_state(run: RunDirectory, cell: Cell, entries: Mapping[str, StageStatus]) -> RunState:
    """The state of a run, from the entries of its stages.

    A stage that says `running` while nobody holds its lock was killed. SCHEDULED: nobody works on the run,
    and a stage is still to come.
    """
    states = {entry.state for entry in entries.values()}
    running = [stage for stage, entry in entries.items() if entry.state == "running"]
    if any(live_holder(run.lock_path(stage)) for stage in running):
        return "RUNNING"
    if "failed" in states:
        return "FAILED"
    if running or states & {"preempted", "interrupted"}:
        return "KILLED"
    if states == {"done"} and entries.keys() == set(cell.stages):
        return "FINISHED"
    return "SCHEDULED"


def records_digest(records: Sequence[Mapping[str, Any]]) -> str:
    """A digest of step records: it changes when a log was cut back and went on differently."""
    return _digest(json.dumps(list(records), sort_keys=True).encode("utf-8"))


def results_changed(benchmark: str, before: Tracked | None, now: Tracked) -> bool:
    """Whether a benchmark has other results than MLflow has."""
    name = _results_name(benchmark)
    return before is None or before.artefacts.get(name) != now.artefacts[name]


def _artefacts(run: RunDirectory, cell: Cell) -> dict[str, str]:
    names = ["config.yaml", "provenance.json", "steps.jsonl", *map(_results_name, _benchmarks(cell))]
    return {name: _digest((run.path / name).read_bytes()) for name in names if (run.path / name).exists()}


def _benchmarks(cell: Cell) -> tuple[str, ...]:
    prefix = "evaluate-"
    return tuple(stage.removeprefix(prefix) for stage in cell.stages if stage.startswith(prefix))


def _results_name(benchmark: str) -> str:
    return f"eval/{benchmark}/results.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
