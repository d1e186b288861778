"""What to do next: the stages of a study's cells, in an order that keeps partial results comparable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from experiments.locks import Holder
from experiments.plan import Cell


@dataclass(frozen=True)
class Task:
    """One stage of a cell."""

    cell: Cell
    stage: str

    def __str__(self) -> str:
        return f"{self.cell.label} seed {self.cell.seed}, {self.stage}"


class TaskState(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()
    HELD = auto()
    """Another process, not of this driver, works on it."""


class Schedule:
    """Where every stage of a study stands. A cell's evaluations wait for its training."""

    def __init__(self, cells: Iterable[Cell], is_done: Callable[[Task], bool]) -> None:
        self.cells = in_order(cells)
        self.holders: dict[Task, Holder | None] = {}
        self._states: dict[Task, TaskState] = {}
        for cell in self.cells:
            for stage in cell.stages:
                task = Task(cell, stage)
                self._states[task] = TaskState.DONE if is_done(task) else TaskState.WAITING

    def next_task(self) -> Task | None:
        """The first stage that can start now; evaluations of trained cells come before the next training."""
        ready = [task for task in self.tasks(TaskState.WAITING) if self._is_trained(task)]
        evaluations = (task for task in ready if task.stage != "train")
        return next(evaluations, ready[0] if ready else None)

    def tasks(self, state: TaskState) -> list[Task]:
        return [task for task, its_state in self._states.items() if its_state is state]

    def set(self, task: Task, state: TaskState, holder: Holder | None = None) -> None:
        self._states[task] = state
        if state is TaskState.HELD:
            self.holders[task] = holder
        else:
            self.holders.pop(task, None)

    def is_complete(self, cell: Cell) -> bool:
        return all(self._states[Task(cell, stage)] is TaskState.DONE for stage in cell.stages)

    def cell_state(self, cell: Cell, stopping: bool) -> str:
        """In a word: waiting, training, trained, evaluating, saving (when stopping), done, failed or held."""
        states = {stage: self._states[Task(cell, stage)] for stage in cell.stages}
        running = [stage for stage, state in states.items() if state is TaskState.RUNNING]
        if running:
            busy = "training" if "train" in running else "evaluating"
            return "saving" if stopping else busy
        for state in (TaskState.FAILED, TaskState.HELD):
            if state in states.values():
                return state.name.lower()
        if self.is_complete(cell):
            return "done"
        return "trained" if states.get("train") is TaskState.DONE else "waiting"

    def _is_trained(self, task: Task) -> bool:
        train = Task(task.cell, "train")
        return task == train or self._states.get(train, TaskState.DONE) is TaskState.DONE


def in_order(cells: Iterable[Cell]) -> Sequence[Cell]:
    """Every arm's first seed, then every arm's second, and so on; arms in the plan's order."""
    arms: dict[str, int] = {}
    places: list[tuple[int, int, Cell]] = []
    for cell in cells:
        turn = arms.get(cell.arm, 0)
        arms[cell.arm] = turn + 1
        places.append((turn, len(places), cell))
    return [cell for _, _, cell in sorted(places, key=lambda place: place[:2])]
