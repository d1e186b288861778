"""How a study stands when its driver ends, and how that is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.local.schedule import Schedule, Task, TaskState
from experiments.locks import Holder
from experiments.plan import Cell
from experiments.run_directory import RunDirectory
from experiments.status import StageError

_FULL_ERRORS = 3
_TAIL_LINES = 8


@dataclass(frozen=True)
class StudyOutcome:
    """The cells and which of them are done, the errors by stage, and the stages that other processes hold."""

    cells: tuple[Cell, ...]
    done: tuple[Cell, ...]
    errors: Mapping[Task, StageError]
    held: Mapping[Task, Holder | None]
    interrupted: bool

    @classmethod
    def of(cls, schedule: Schedule, errors: Mapping[Task, StageError], interrupted: bool) -> StudyOutcome:
        cells = tuple(schedule.cells)
        done = tuple(cell for cell in cells if schedule.is_complete(cell))
        held = {task: schedule.holders[task] for task in schedule.tasks(TaskState.HELD)}
        return cls(cells, done, errors, held, interrupted)

    @property
    def is_complete(self) -> bool:
        return len(self.done) == len(self.cells)

    @property
    def exit_code(self) -> int:
        """0 when every cell is done, 130 after an interrupt, else 1."""
        if self.is_complete:
            return 0
        return 130 if self.interrupted else 1


def outcome_lines(outcome: StudyOutcome, runs: Mapping[str, RunDirectory]) -> Iterator[str]:
    """What to tell the user: what failed and why, who holds what, and the way on."""
    for number, (task, error) in enumerate(outcome.errors.items()):
        yield f"FAILED {task}: {error.kind}: {error.message}"
        yield f"  logs: {runs[task.cell.run_id].path / 'attempts'}"
        if number < _FULL_ERRORS:
            yield from (f"  | {line}" for line in error.log_tail.splitlines()[-_TAIL_LINES:])
    for task, holder in outcome.held.items():
        yield f"{task} is left to {holder or 'another process'}, which still works on it."
    yield f"{len(outcome.done)} of {len(outcome.cells)} cells are done."
    if outcome.is_complete:
        return
    if outcome.interrupted:
        yield "Interrupted; what is finished is kept. Resume with the same command."
    elif outcome.errors:
        yield "Mend what failed and run the same command: it goes on with what is left."
    elif outcome.held:
        yield "Run the same command later for what may be left then."
