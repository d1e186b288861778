"""How far a study is: each stage of each cell, from run directories, the ledger and Slurm's queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from experiments.atomic_files import file_system_time
from experiments.errors import UserError
from experiments.locks import live_holder
from experiments.plan import Cell, Plan
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus
from slurm.ledger import REPORT, Submitted, newest, submissions
from slurm.log_end import log_end
from slurm.queue import JobState, Queue, read_queue
from slurm.verdict import FAILED, LOST, Verdict, judge, judge_again

_NO_SLURM = Queue({}, {}, ())


@dataclass(frozen=True)
class StageView:
    """One stage: its verdict, what the run directory says, its newest job, and that one's state in Slurm."""

    stage: str
    verdict: Verdict
    entry: StageStatus | None
    submitted: Submitted | None
    job: JobState | None

    @property
    def node(self) -> str:
        if self.job is not None and self.job.node:
            return self.job.node
        return self.entry.host if self.entry is not None else ""

    @property
    def job_id(self) -> str:
        return str(self.submitted.task) if self.submitted else ""


@dataclass(frozen=True)
class CellView:
    """A cell: its stages, the last finished step of its training, of how many (None: not known yet), and the
    seconds that the rest of the training takes at the pace of the last steps."""

    cell: Cell
    stages: dict[str, StageView]
    step: int
    total: int | None
    seconds_left: float | None


@dataclass(frozen=True)
class Overview:
    """A study. report: the newest job that writes it, None without one. notes: what did not answer."""

    plan: Plan
    cells: tuple[CellView, ...]
    report: StageView | None
    notes: tuple[str, ...]


def study_overview(plan: Plan, root: Path) -> Overview:
    """Look at every cell of a study; Slurm is asked once, and only when something was submitted to it.

    A run whose status is damaged is told as such beside the others. Raises UserError when a submission's
    record is damaged.
    """
    sent = tuple(submissions(root))
    submitted = newest(sent, {})
    statuses, damage = _statuses(plan, root)
    report_key = ("", f"{REPORT}:{plan.study}")
    keys = [*_unfinished(plan, statuses), report_key]
    queue = _NO_SLURM
    if sent:
        queue = read_queue([submitted[key].task for key in keys if key in submitted])
        recovered = newest(sent, queue.comments)
        if recovered != submitted:
            submitted = recovered
            queue = read_queue([submitted[key].task for key in keys if key in submitted])
    clock = cache(lambda: file_system_time(root / "runs"))
    cells = tuple(
        _damaged_cell_view(cell, damage[cell.run_id])
        if cell.run_id in damage
        else _cell_view(cell, root, statuses[cell.run_id], submitted, queue, clock)
        for cell in plan.cells
    )
    report = submitted.get(report_key)
    return Overview(plan, cells, _report_view(plan, root, report, queue) if report else None, queue.notes)


def _statuses(plan: Plan, root: Path) -> tuple[dict[str, dict[str, StageStatus]], dict[str, UserError]]:
    """What the runs say of their stages, and of those whose status can't be read the reason, by run id."""
    statuses: dict[str, dict[str, StageStatus]] = {}
    damage: dict[str, UserError] = {}
    for cell in plan.cells:
        try:
            statuses[cell.run_id] = RunDirectory(root / "runs" / cell.run_id).status()
        except UserError as error:
            damage[cell.run_id] = error
    return statuses, damage


def _unfinished(plan: Plan, statuses: Mapping[str, Mapping[str, StageStatus]]) -> Iterator[tuple[str, str]]:
    """The stages that don't say that they are done: accounting is asked about these alone."""
    for cell in plan.cells:
        if cell.run_id not in statuses:
            continue
        status = statuses[cell.run_id]
        for stage in cell.stages:
            if stage not in status or status[stage].state != "done":
                yield cell.run_id, stage


def _cell_view(
    cell: Cell,
    root: Path,
    status: Mapping[str, StageStatus],
    submitted: Mapping[tuple[str, str], Submitted],
    queue: Queue,
    clock: Callable[[], float],
) -> CellView:
    """clock: the file system's time, asked once for all cells, and only where a stage runs elsewhere."""
    run = RunDirectory(root / "runs" / cell.run_id)
    views: dict[str, StageView] = {}
    for stage in cell.stages:
        entry, newest_one = status.get(stage), submitted.get((cell.run_id, stage))
        job = queue.states.get(newest_one.task) if newest_one else None
        alive = (
            entry is not None
            and entry.state == "running"
            and live_holder(run.lock_path(stage), now=clock) is not None
        )
        verdict = judge(entry, alive, newest_one, job)
        if verdict.state in ("died", "killed") and newest_one is not None:
            verdict = judge_again(verdict, log_end(newest_one.submission.log(newest_one.task)))
        views[stage] = StageView(stage, verdict, entry, newest_one, job)
    training = views["train"].verdict.state
    for stage, view in views.items():
        # Slurm forgets why: what never started and was cancelled while its training had failed was skipped.
        if view.verdict.state in ("cancelled", "lost") and view.verdict.detail != "fastrl cancel":
            never_started = view.entry is None and stage != "train"
            if never_started and (training in FAILED or training in LOST or training == "cancelled"):
                verdict = Verdict("skipped", view.verdict.source, "its training did not succeed")
                views[stage] = replace(view, verdict=verdict)
    step, pace = _progress(run.steps_path)
    total = _total_steps(run) if step else None
    left = pace * (total - step) if pace is not None and total is not None and training == "running" else None
    return CellView(cell, views, step, total, left)


def _damaged_cell_view(cell: Cell, error: UserError) -> CellView:
    """The reason stands at the first stage, for all of them have the same."""
    reasons = [f"{error.what} {error.where}: {error.way_out}", *("" for _ in cell.stages[1:])]
    stages = {
        stage: StageView(stage, Verdict("damaged", "status.json", reason), None, None, None)
        for stage, reason in zip(cell.stages, reasons, strict=True)
    }
    return CellView(cell, stages, 0, None, None)


def _report_view(plan: Plan, root: Path, submitted: Submitted, queue: Queue) -> StageView:
    job = queue.states.get(submitted.task)
    page = root / "studies" / plan.study / "report.html"
    # By Slurm's word where it has one: the clock of the file system may differ from the submitter's.
    said = job is not None and job.state == "COMPLETED"
    written = page.is_file() and (said or page.stat().st_mtime >= submitted.submission.created)
    if written and (job is None or not job.active):
        return StageView(REPORT, Verdict("done", "status.json", str(page)), None, submitted, job)
    return StageView(REPORT, judge(None, False, submitted, job), None, submitted, job)


def _total_steps(run: RunDirectory) -> int | None:
    try:
        steps = (run.provenance() or {}).get("steps")
    except UserError:
        # Whoever uses the file reports the damage; a view of other cells must not end on it.
        return None
    return steps if isinstance(steps, int) else None


def _progress(path: Path) -> tuple[int, float | None]:
    """The last whole record's step, and the seconds a step of the last few; the log's end alone is read."""
    lines = log_end(path).split("\n")[:-1]
    records = []
    for line in (lines[0], lines[-1]) if lines else ():
        try:
            record = json.loads(line)
            records.append((int(record["step"]), float(record["time"])))
        except (ValueError, TypeError, KeyError, OverflowError):
            return 0, None
    if not records:
        return 0, None
    (first, began), (last, ended) = records
    return last, (ended - began) / (last - first) if last != first else None
