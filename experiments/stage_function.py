"""What a stage is: a function that does one kind of work on a run, given the run alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.run_directory import RunDirectory


class StageStopped(Exception):
    """A stage was asked to stop, saved what it had, and ended before its work was complete."""


@dataclass(frozen=True)
class StageContext:
    """What a stage is given besides its run.

    stop_requested: to be polled every few seconds at least. announce: logs a line.
    """

    stage: str
    attempt: int
    stop_requested: Callable[[], bool]
    announce: Callable[[str], None]


class StageFunction(Protocol):
    """Lives in an importable module, so that a process on another machine finds it by name."""

    def __call__(self, run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
        """Do the work and return when it is complete; go on from what an earlier attempt left.

        Raises StageStopped, everything saved, soon after `context.stop_requested()` turns true.
        """
        ...
