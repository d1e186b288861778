"""Runs a study on this machine: every stage of every cell that is not done, several at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from experiments.errors import UserError
from experiments.local.live_table import StudyProgress, View, opened_view
from experiments.local.outcome import StudyOutcome, outcome_lines
from experiments.local.preparation import prepare, start_of
from experiments.local.progress import CellProgress, cell_progress
from experiments.local.schedule import Schedule, Task, TaskState
from experiments.local.worker import PRELOADED, Failure, Worker, do_stage, received, start_worker
from experiments.locks import live_holder
from experiments.plan import Cell, Plan
from experiments.run_directory import RunDirectory
from experiments.stage import STAGES, StageOutcome, record_death, stage_is_done
from experiments.status import StageError

RESTARTS = 2
"""How often a stage whose process was killed is started again before it counts as failed."""

WAIT_FOR_OTHERS = 30.0
"""Seconds that a driver with nothing else to do waits for stages that other processes work on."""

_REFRESH_SECONDS = 0.5


@dataclass(frozen=True)
class Work:
    """What workers do.

    stages: as `experiments.stage.STAGES`. preloaded: modules imported once for all workers. prepares: whether
    starting policies are made sure of before the first cell.
    """

    stages: Mapping[str, str]
    preloaded: tuple[str, ...]
    prepares: bool


TRAIN_AND_EVALUATE = Work(STAGES, PRELOADED, prepares=True)


def run_study(
    plan: Plan,
    configs: Mapping[str, Mapping[str, Any]],
    root: Path,
    workers: int | None,
    console: Console | None = None,
    work: Work = TRAIN_AND_EVALUATE,
    wait_for_others: float = WAIT_FOR_OTHERS,
) -> StudyOutcome:
    """Run what is left of a study's cells, with `workers` processes (None: one a core of this machine).

    configs: the resolved config of each run id. A failed cell does not stop the others. After Ctrl-C or
    SIGTERM the running stages save; the same call goes on from there. A run whose status is damaged fails
    alone. Raises UserError when a run's configuration is damaged or another one's.
    """
    runs = {cell.run_id: RunDirectory.create(root, cell.run_id, configs[cell.run_id]) for cell in plan.cells}
    driver = _Driver(plan, runs, workers or usable_cores(), console or Console(), work, wait_for_others)
    return driver.run()


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Driver:
    def __init__(
        self,
        plan: Plan,
        runs: Mapping[str, RunDirectory],
        slots: int,
        console: Console,
        work: Work,
        wait_for_others: float,
    ) -> None:
        self._runs, self._slots, self._console = runs, slots, console
        self._work, self._wait_for_others = work, wait_for_others
        self._configs = {run_id: run.config() for run_id, run in runs.items()}
        self._schedule = Schedule(plan.cells, self._is_done)
        self._workers: dict[Task, Worker] = {}
        self._deaths: Counter[Task] = Counter()
        self._errors: dict[Task, StageError] = {}
        self._shown: dict[Cell, CellProgress] = {}
        self._ended = {cell for cell in self._schedule.cells if self._schedule.is_complete(cell)}
        self._interrupts = 0
        self._asked_to_stop = False
        self._idle_since: float | None = None
        self._started = time.monotonic()
        self._first_step = 0

    def run(self) -> StudyOutcome:
        cells = self._schedule.cells
        if 0 < len(self._ended) < len(cells):
            self._say(f"{len(self._ended)} of {len(cells)} cells are done already.")
        if len(self._ended) < len(cells):
            with self._signals():
                try:
                    self._work_through()
                finally:
                    self._end_workers()
        outcome = StudyOutcome.of(self._schedule, self._errors, interrupted=self._interrupts > 0)
        for line in outcome_lines(outcome, self._runs):
            self._say(line)
        return outcome

    def _work_through(self) -> None:
        if self._work.preloaded:
            self._say("Loading what the workers need, once for all cells ...")
        if self._work.prepares:
            self._prepare()
        for cell in self._schedule.cells:
            self._shown[cell] = self._progress(cell)
        self._first_step = sum(cell.step for cell in self._shown.values())
        self._started = time.monotonic()
        with opened_view(self._console) as view:
            while True:
                if self._interrupts:
                    self._stop_workers()
                else:
                    self._start_workers()
                if not self._workers and (self._interrupts or self._is_at_the_end()):
                    break
                self._take_results()
                self._show(view)
            self._show(view)

    def _prepare(self) -> None:
        untrained = [task for task in self._schedule.tasks(TaskState.WAITING) if task.stage == "train"]
        starts = {task: start_of(self._configs[task.cell.run_id]) for task in untrained}
        models = next(iter(self._runs.values())).root / "models"
        errors = prepare(
            starts.values(),
            models,
            self._slots,
            self._work.preloaded,
            self._say,
            lambda: self._interrupts > 0,
        )
        for task, start in starts.items():
            if start in errors:
                self._fail(task, errors[start])

    def _start_workers(self) -> None:
        self._look_at_held_tasks()
        while len(self._workers) < self._slots:
            task = self._schedule.next_task()
            if task is None:
                return
            path = self._runs[task.cell.run_id].path
            self._workers[task] = start_worker(
                do_stage, path, task.stage, self._work.stages, preloaded=self._work.preloaded
            )
            self._schedule.set(task, TaskState.RUNNING)

    def _look_at_held_tasks(self) -> None:
        """A stage that another process worked on may be done by now, or given up."""
        for task in self._schedule.tasks(TaskState.HELD):
            if live_holder(self._runs[task.cell.run_id].lock_path(task.stage)) is None:
                self._schedule.set(task, TaskState.DONE if self._is_done(task) else TaskState.WAITING)
                self._idle_since = None

    def _is_at_the_end(self) -> bool:
        """Whether no stage can be started any more; those of other processes are waited for, not for long."""
        if not self._schedule.tasks(TaskState.HELD):
            return self._schedule.next_task() is None
        if self._idle_since is None:
            self._idle_since = time.monotonic()
            self._say(f"Waiting up to {self._wait_for_others:.0f} s for the stages that others work on ...")
        return time.monotonic() - self._idle_since > self._wait_for_others

    def _take_results(self) -> None:
        ready = wait([worker.results for worker in self._workers.values()], timeout=_REFRESH_SECONDS)
        for task, worker in list(self._workers.items()):
            if worker.results in ready:
                del self._workers[task]
                self._take_result(task, worker)
                self._idle_since = None

    def _take_result(self, task: Task, worker: Worker) -> None:
        result = received(worker)
        worker.process.join()
        if isinstance(result, Failure):
            self._fail(task, StageError(result.kind, result.message, result.trace))
        elif not isinstance(result, StageOutcome):
            self._take_end(task, worker.end)
        elif result.state in ("preempted", "interrupted"):
            self._take_end(task, f"{result.state} by a signal")
        elif result.state == "locked":
            self._schedule.set(task, TaskState.HELD, result.holder)
            self._say(f"{task}: {result.holder or 'another process'} works on it; leaving it to that one.")
        elif result.error is not None:
            self._fail(task, result.error)
        else:
            self._schedule.set(task, TaskState.DONE)

    def _take_end(self, task: Task, how: str) -> None:
        """A worker ended before its stage did: by our wish, or because somebody killed or stopped it."""
        if self._interrupts:
            self._schedule.set(task, TaskState.WAITING)
            return
        self._deaths[task] += 1
        if self._deaths[task] <= RESTARTS:
            self._say(f"{task}: its process was ended from outside ({how}); starting it again.")
            self._schedule.set(task, TaskState.WAITING)
            return
        message = f"its process was ended from outside {self._deaths[task]} times, the last time: {how}"
        hint = "; SIGKILL often means that memory ran out: try fewer --workers"
        error = StageError("WorkerDied", message + hint, "")
        with contextlib.suppress(UserError):
            record_death(self._runs[task.cell.run_id], task.stage, error)
        self._fail(task, error)

    def _fail(self, task: Task, error: StageError) -> None:
        self._errors[task] = error
        self._schedule.set(task, TaskState.FAILED)

    def _stop_workers(self) -> None:
        if not self._asked_to_stop:
            self._asked_to_stop = True
            self._say("Stopping: running stages save what they have. Ctrl-C again ends them at once.")
            for worker in self._workers.values():
                worker.signal(signal.SIGINT)
        if self._interrupts > 1:
            for worker in self._workers.values():
                worker.signal(signal.SIGKILL)

    def _end_workers(self) -> None:
        """Leave nobody working when the driver itself ends early."""
        for worker in self._workers.values():
            worker.signal(signal.SIGTERM)
        for worker in self._workers.values():
            worker.process.join()

    def _is_done(self, task: Task) -> bool:
        run_id = task.cell.run_id
        try:
            return stage_is_done(self._runs[run_id], task.stage, self._configs[run_id])
        except UserError:
            return False  # The stage will fail by the damage and report it; the other cells go on.

    def _show(self, view: View) -> None:
        finished = []
        for cell, before in self._shown.items():
            state = self._schedule.cell_state(cell, stopping=self._asked_to_stop)
            if state != before.state or state in ("training", "saving", "held"):
                self._shown[cell] = self._progress(cell)
            if state in ("done", "failed") and cell not in self._ended:
                self._ended.add(cell)
                finished.append(self._shown[cell])
        cells = list(self._shown.values())
        seconds = time.monotonic() - self._started
        view.show(StudyProgress(cells, seconds, _seconds_left(cells, self._first_step, seconds)), finished)

    def _progress(self, cell: Cell) -> CellProgress:
        state = self._schedule.cell_state(cell, stopping=self._asked_to_stop)
        return cell_progress(self._runs[cell.run_id], cell, state)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def interrupt(number: int, frame: FrameType | None) -> None:
            self._interrupts += 1

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, interrupt) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _seconds_left(cells: list[CellProgress], first_step: int, seconds: float) -> float | None:
    """From this command's pace so far, in training steps a second with the evaluations counted in."""
    lengths = [cell.steps for cell in cells if cell.steps is not None]
    steps = sum(cell.step for cell in cells) - first_step
    if not lengths or steps < min(lengths):
        return None
    left = sum(
        (cell.steps or max(lengths)) - cell.step for cell in cells if cell.state not in ("done", "failed")
    )
    return seconds * left / steps
