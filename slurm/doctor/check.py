"""The result of one look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]
_EXIT_CODES: dict[Level, int] = {"ok": 0, "warn": 0, "fail": 1}


@dataclass(frozen=True)
class Check:
    """name: what was looked at. level: fail means that a study can't run. found: what was seen. way_out: what
    to do about it, "" when it is fine."""

    name: str
    level: Level
    found: str
    way_out: str


def ok(name: str, found: str) -> Check:
    return Check(name, "ok", found, "")


def exit_code(checks: Iterable[Check]) -> int:
    """1 when a check failed, else 0."""
    return max((_EXIT_CODES[check.level] for check in checks), default=0)
