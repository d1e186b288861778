"""What is shown while a study runs: a live table in a terminal; elsewhere a line for each finished cell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from experiments.local.progress import CellProgress

_LINE_SECONDS = 60.0
_ROWS_BESIDES_TABLE = 6
_STYLES = {"done": "green", "failed": "red", "waiting": "dim", "held": "yellow"}
_PLACES = ("training", "evaluating", "saving", "failed", "held", "trained", "waiting", "done")
"""Cells in these states, first ones first, get the rows of a terminal that is too low for all."""


@dataclass(frozen=True)
class StudyProgress:
    """cells: in the order in which they run. seconds, seconds_left (None if unknown): of this command."""

    cells: Sequence[CellProgress]
    seconds: float
    seconds_left: float | None


class View(Protocol):
    def show(self, progress: StudyProgress, finished: Sequence[CellProgress]) -> None:
        """Show the present progress; `finished` are the cells that ended, well or not, since the last one."""
        ...


@contextlib.contextmanager
def opened_view(console: Console) -> Iterator[View]:
    """The view that suits a console, for as long as the study runs; other output goes through the console."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield _LiveTable(live)


class _LiveTable:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, progress: StudyProgress, finished: Sequence[CellProgress]) -> None:
        room = max(3, self._live.console.height - _ROWS_BESIDES_TABLE)
        self._live.update(Group(cells_table(progress.cells, room), Text(summary(progress))), refresh=True)


class _Lines:
    """A line a finished cell; now and then a line while none finishes, so that a log shows life."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = 0.0

    def show(self, progress: StudyProgress, finished: Sequence[CellProgress]) -> None:
        for cell in finished:
            accuracy = "" if cell.accuracy is None else f", accuracy {cell.accuracy:.3f}"
            self._print(
                f"{cell.label} seed {cell.seed}: {cell.state} at step {cell.step}{accuracy}", progress
            )
        if progress.seconds - self._last > _LINE_SECONDS:
            busy = [cell for cell in progress.cells if cell.state in ("training", "evaluating", "saving")]
            shown = "; ".join(f"{cell.label} seed {cell.seed} {cell.state} {_steps(cell)}" for cell in busy)
            self._print(shown or "nothing is running", progress)

    def _print(self, text: str, progress: StudyProgress) -> None:
        self._last = progress.seconds
        self._console.print(f"[{summary(progress)}] {text}", markup=False, highlight=False, soft_wrap=True)


def cells_table(cells: Sequence[CellProgress], rows: int) -> Table:
    """A table of at most so many cells: the busy ones, then the rest, in the order in which they run."""
    order = sorted(range(len(cells)), key=lambda index: _PLACES.index(cells[index].state))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cell", "seed", "state"):
        table.add_column(heading, no_wrap=True)
    for heading in ("step", "accuracy", "kept", "s/step", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    for index in sorted(order[:rows]):
        table.add_row(*_row(cells[index]), style=_STYLES.get(cells[index].state, ""))
    if len(cells) > rows:
        table.add_row(f"and {len(cells) - rows} more", style="dim")
    return table


def summary(progress: StudyProgress) -> str:
    """`3 of 16 cells done, 1 failed, 2:05, about 9:30 left`."""
    states = [cell.state for cell in progress.cells]
    parts = [f"{states.count('done')} of {len(states)} cells done"]
    if "failed" in states:
        parts.append(f"{states.count('failed')} failed")
    parts.append(duration(progress.seconds))
    if progress.seconds_left is not None:
        parts.append(f"about {duration(progress.seconds_left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _row(cell: CellProgress) -> list[str]:
    return [
        cell.label,
        str(cell.seed),
        cell.state,
        _steps(cell),
        _number(cell.accuracy, 3),
        _number(cell.kept, 1),
        _number(cell.step_seconds, 2),
        "" if cell.seconds_left is None or cell.state != "training" else duration(cell.seconds_left),
    ]


def _steps(cell: CellProgress) -> str:
    if cell.steps is None:
        return ""
    return f"{cell.step}/{cell.steps}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
