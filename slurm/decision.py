"""Which stages a submission sends, which it joins, and which it leaves; a pure function of an overview."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from experiments.errors import UserError
from experiments.plan import Cell
from slurm.overview import CellView, Overview, StageView
from slurm.queue import TaskId
from slurm.verdict import ACTIVE, BAD, DAMAGED, FAILED, LOST, StageState

Retry = Literal["failed", "lost", "all"]
RETRIES: tuple[Retry, ...] = get_args(Retry)

_RETRIED: dict[Retry | None, frozenset[StageState]] = {
    None: frozenset(),
    "failed": FAILED,
    "lost": LOST,
    "all": FAILED | LOST,
}


@dataclass(frozen=True)
class Step:
    """A stage to send. waits_for: a task in the queue that it waits for; None for none, or for the training
    that is sent with it (waits_for_training)."""

    cell: Cell
    stage: str
    waits_for: TaskId | None
    waits_for_training: bool


@dataclass(frozen=True)
class Decision:
    """send: in the plan's order. joined: stages that somebody has in hand already. left: those that ended
    badly and are not retried, or whose run is damaged. blocked: stages whose training is among `left`, or
    runs outside Slurm. done: how many.
    """

    send: tuple[Step, ...]
    joined: tuple[tuple[Cell, StageView], ...]
    left: tuple[tuple[Cell, StageView], ...]
    blocked: tuple[tuple[Cell, str], ...]
    done: int


def decide(
    overview: Overview,
    is_done: Callable[[Cell, str], bool],
    retry: Retry | None,
    only: Sequence[str],
    limit: int | None,
) -> Decision:
    """What to do with each stage.

    is_done: whether nothing is left to do, results checked against the present benchmark. only: cells to look
    at, as `chosen` reads them. limit: at most so many cells are sent.
    """
    send: list[Step] = []
    joined, left, blocked, done = [], [], [], 0
    cells_sent = 0
    for view in chosen(overview.cells, only):
        steps: list[Step] = []
        training: Literal["done", "sent", "active", "stuck"] = "stuck"
        waits_for: TaskId | None = None
        for stage, stage_view in view.stages.items():
            state = stage_view.verdict.state
            if state not in DAMAGED and is_done(view.cell, stage):
                done += 1
                outcome: Literal["done", "sent", "active", "stuck"] = "done"
            elif state in ACTIVE:
                joined.append((view.cell, stage_view))
                in_queue = stage_view.job is not None and stage_view.job.active
                outcome = "active" if in_queue else "stuck"
            elif state in BAD - _RETRIED[retry]:
                left.append((view.cell, stage_view))
                outcome = "stuck"
            elif stage != "train" and training == "stuck":
                blocked.append((view.cell, stage))
                outcome = "stuck"
            else:
                waiting = stage != "train" and training == "sent"
                steps.append(Step(view.cell, stage, waits_for if stage != "train" else None, waiting))
                outcome = "sent"
            if stage == "train":
                training = outcome
                if outcome == "active" and stage_view.submitted is not None:
                    waits_for = stage_view.submitted.task
        if steps and (limit is None or cells_sent < limit):
            cells_sent += 1
            send += steps
    return Decision(tuple(send), tuple(joined), tuple(left), tuple(blocked), done)


def chosen(cells: Sequence[CellView], only: Sequence[str]) -> list[CellView]:
    """The cells that `only` names: by number, or by a pattern (`*`, `?`) of run id or label; all when empty.

    Raises UserError for a word that names no cell.
    """
    if not only:
        return list(cells)
    matched: set[int] = set()
    for word in only:
        found = {number for number, view in enumerate(cells, start=1) if _matches(word, number, view.cell)}
        if not found:
            raise UserError(
                f'No cell is called "{word}".',
                "--only",
                "name cells by number, run id or label, with * and ? if you like: fastrl plan lists them",
            )
        matched |= found
    return [view for number, view in enumerate(cells, start=1) if number in matched]


def _matches(word: str, number: int, cell: Cell) -> bool:
    names: Collection[str] = (str(number), cell.run_id, cell.label)
    return any(name == word or fnmatch.fnmatchcase(name, word) for name in names)
