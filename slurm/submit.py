"""`fastrl submit`: from a decision to job arrays in the queue; returns as soon as they are there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.atomic_files import write_file
from experiments.cluster_settings import JobShape, SlurmSettings, TrainShape
from experiments.errors import UserError
from experiments.locks import Lock, LockHeld, acquire
from experiments.plan import Cell, Plan
from experiments.run_directory import RunDirectory
from experiments.stage import STAGES, stage_is_done
from slurm.arrays import GATE, DraftArray, draft_arrays, report_array
from slurm.client import SlurmError, call, controller_setting, submit
from slurm.decision import Decision, Retry, decide
from slurm.ledger import REPORT, JobArray, StageTask, Submission, new_folder, slurm_folder, write_submission
from slurm.overview import Overview, study_overview
from slurm.queue import NEVER
from slurm.script import batch_script, job_name, sbatch_options
from slurm.settings import settings_by_run
from slurm.snapshot import snapshot_code
from slurm.verdict import ACTIVE

_USUAL_ARRAY_SIZE = 1001
"""Slurm's default MaxArraySize, for a dry run without a cluster."""

_WRITERS = 16
_PATTERNS = ("%", "\\")


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    retry, only, limit: see `slurm.decision`. canary: one cell goes first, and the others after its first
    training step. stages: stage functions as `experiments.stage.STAGES`. now: unix seconds.
    """

    retry: Retry | None
    only: tuple[str, ...]
    limit: int | None
    canary: bool
    stages: Mapping[str, str]
    now: float


@dataclass(frozen=True)
class SentArray:
    """An array as it was sent, or would be. options: sbatch's. gpus: of each task, on all its nodes."""

    array: JobArray
    options: tuple[str, ...]
    gpus: int


@dataclass(frozen=True)
class Outcome:
    """decision: on every stage. arrays: sent now, or to be sent. folder: of the submission, None for none."""

    decision: Decision
    arrays: tuple[SentArray, ...]
    folder: Path | None
    overview: Overview


def submit_study(
    plan: Plan, configs: Mapping[str, Mapping[str, Any]], root: Path, request: Request
) -> Outcome:
    """Send what is left of a study.

    configs: the resolved config of each run id. Nothing is sent for a run whose status is damaged. Raises
    UserError for a cluster without Slurm, a run whose configuration is damaged or another one's, or while
    another submission to the same results folder is under way; SlurmError when Slurm refuses, what was sent
    before stays sent and recorded.
    """
    submitter = _Submitter(plan, configs, root.resolve(), request)
    with _submit_lock(root.resolve()):
        _create_runs(plan, configs, root.resolve())
        return submitter.send()


def _create_runs(plan: Plan, configs: Mapping[str, Mapping[str, Any]], root: Path) -> None:
    """Make the run directories; several at a time, for most of it is waiting for the file system."""
    with ThreadPoolExecutor(_WRITERS) as pool:
        made = pool.map(lambda cell: RunDirectory.create(root, cell.run_id, configs[cell.run_id]), plan.cells)
        for _ in made:
            pass


def plan_submission(
    plan: Plan, configs: Mapping[str, Mapping[str, Any]], root: Path, request: Request
) -> Outcome:
    """What `submit_study` would send; nothing is sent or written. Raises as it does."""
    return _Submitter(plan, configs, root.resolve(), request).rehearse()


class _Submitter:
    def __init__(
        self, plan: Plan, configs: Mapping[str, Mapping[str, Any]], root: Path, request: Request
    ) -> None:
        self._plan, self._configs, self._root, self._request = plan, configs, root, request
        if any(letter in str(root) for letter in _PATTERNS):
            raise UserError(
                "The results folder's path holds a letter that Slurm replaces in the paths of logs: % or \\.",
                str(root),
                "name another folder: paths.root=FOLDER",
            )
        self._settings = settings_by_run(configs)

    def rehearse(self) -> Outcome:
        overview, decision = self._look()
        try:
            largest = self._largest_array()
        except SlurmError:
            largest = _USUAL_ARRAY_SIZE
        submission = self._submission(slurm_folder(self._root) / "code" / "SNAPSHOT")
        job_ids: dict[DraftArray, str] = {}
        sent = []
        for number, draft in enumerate(self._drafts(overview, decision, largest), start=1):
            sent.append(self._array(submission, number, draft, job_ids))
            job_ids[draft] = f"<job {number}>"
        return Outcome(decision, tuple(sent), None, overview)

    def send(self) -> Outcome:
        overview, decision = self._look()
        drafts = self._drafts(overview, decision, self._largest_array())
        if not drafts:
            return Outcome(decision, (), None, overview)
        self._cancel_stuck(overview)
        submission = self._submission(snapshot_code(self._root))
        job_ids: dict[DraftArray, str] = {}
        sent = []
        for number, draft in enumerate(drafts, start=1):
            each = self._array(submission, number, draft, job_ids)
            # Recorded before it is sent: a job that finds no record of itself can't work.
            submission = submission.with_array(each.array)
            write_submission(submission)
            write_file(submission.script(each.array), self._script(submission, each.array, draft))
            job_ids[draft] = submit(submission.script(each.array), each.options)
            each = replace(each, array=replace(each.array, job_id=job_ids[draft]))
            submission = submission.with_array(each.array)
            write_submission(submission)
            sent.append(each)
        return Outcome(decision, tuple(sent), submission.folder, overview)

    def _look(self) -> tuple[Overview, Decision]:
        overview = study_overview(self._plan, self._root)
        request = self._request
        return overview, decide(overview, self._is_done, request.retry, request.only, request.limit)

    def _is_done(self, cell: Cell, stage: str) -> bool:
        run = RunDirectory(self._root / "runs" / cell.run_id)
        return stage_is_done(run, stage, self._configs[cell.run_id])

    def _largest_array(self) -> int:
        """Tasks of the largest array, by the settings or the controller."""
        named = [each.max_array_size for each in self._settings.values() if each.max_array_size is not None]
        if len(named) == len(self._settings):
            return min(named)
        asked = controller_setting("MaxArraySize")
        return min([int(asked) if asked else _USUAL_ARRAY_SIZE, *named])

    def _drafts(self, overview: Overview, decision: Decision, largest: int) -> list[DraftArray]:
        gate = self._gate if self._request.canary else None
        drafts = draft_arrays(decision, self._settings, largest, self._task, gate)
        page = self._root / "studies" / self._plan.study / "report.html"
        has_report = overview.report is not None and overview.report.verdict.state in ACTIVE
        if drafts or not (page.is_file() or has_report or decision.joined):
            joined = [
                str(view.submitted.task)
                for _, view in decision.joined
                if view.submitted and view.job and view.job.active
            ]
            settings = self._settings[self._plan.cells[0].run_id]
            drafts.append(report_array(drafts, joined, settings, self._report(settings)))
        return drafts

    def _array(
        self, submission: Submission, number: int, draft: DraftArray, job_ids: Mapping[DraftArray, str]
    ) -> SentArray:
        after = [
            f"{kind}:{job_ids[other] if isinstance(other, DraftArray) else other}"
            for kind, other in draft.after
        ]
        array = JobArray(
            number=number,
            name=job_name(self._plan.study, draft.kind),
            job_id=None,
            depends_on=",".join(after),
            stall_minutes=draft.settings.stall_minutes,
            max_requeues=draft.settings.max_requeues,
            ray_join_seconds=draft.settings.ray_join_seconds,
            tasks=dict(draft.tasks),
        )
        shape = _shape(draft)
        nodes = shape.nodes if isinstance(shape, TrainShape) else 1
        options = sbatch_options(
            name=array.name,
            folder=submission.folder,
            comment=submission.comment(array),
            indices=list(array.tasks),
            depends_on=array.depends_on,
            nodes=nodes,
            shape=shape,
            settings=draft.settings,
        )
        return SentArray(array, tuple(options), nodes * shape.gpus)

    def _script(self, submission: Submission, array: JobArray, draft: DraftArray) -> str:
        return batch_script(
            f"{array.name} of {submission.folder.name}",
            draft.settings.setup,
            draft.settings.environment,
            Path(submission.code),
            [_control(draft.settings), "-m", "slurm.job", str(submission.folder), str(array.number)],
        )

    def _task(self, cell: Cell, stage: str) -> StageTask:
        kind, settings = stage.partition("-")[0], self._settings[cell.run_id]
        python = (settings.python.train if kind == "train" else settings.python.evaluate) or sys.executable
        run = self._root / "runs" / cell.run_id
        command = [python, "-m", "experiments.stage", str(run), stage]
        if self._request.stages[kind] != STAGES[kind]:
            command += ["--function", self._request.stages[kind]]
        return StageTask(cell.run_id, stage, tuple(command))

    def _gate(self, cell: Cell) -> StageTask:
        python = _control(self._settings[cell.run_id])
        command = (python, "-m", "slurm.gate", str(self._root), cell.run_id)
        return StageTask("", GATE, command)

    def _report(self, settings: SlurmSettings) -> StageTask:
        words = (f"study={self._plan.study}", f"paths.root={self._root}")
        return StageTask("", REPORT, (_control(settings), "-m", "experiments", "report", *words))

    def _submission(self, code: Path) -> Submission:
        cluster = self._configs[self._plan.cells[0].run_id]["cluster"]["name"]
        return Submission(new_folder(self._root), self._plan.study, self._request.now, cluster, str(code), ())

    def _cancel_stuck(self, overview: Overview) -> None:
        """Take jobs out of the queue that wait for what can't happen; their stages are sent again."""
        stuck = [
            str(view.submitted.task)
            for cell in overview.cells
            for view in cell.stages.values()
            if view.submitted and view.job and view.job.active and view.job.reason == NEVER
        ]
        if stuck:
            call(["scancel", *stuck])


def _control(settings: SlurmSettings) -> str:
    return settings.python.control or sys.executable


def _shape(draft: DraftArray) -> JobShape:
    shapes = draft.settings.shapes
    if draft.kind == GATE:
        # It only looks at a file, for as long as the canary may wait for its first step.
        return replace(shapes.report, gpus=0, cpus=1, minutes=shapes.train.minutes)
    return getattr(shapes, draft.kind.partition("-")[0])  # type: ignore[no-any-return]


def _submit_lock(root: Path) -> Lock:
    path = slurm_folder(root) / "submit.lock"
    try:
        return acquire(path)
    except LockHeld as held:
        raise UserError(
            f"Another submission is under way: {held.holder or 'one that has just begun'}.",
            str(path),
            "wait for it, then run the same command again",
            exit_code=1,
        ) from None
