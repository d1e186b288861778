"""What is raised for a record that can't be trusted."""

from __future__ import annotations


class RecordError(ValueError):
    """A run's record that can't be trusted. where: the file, and the line if one is at fault; reason: why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
