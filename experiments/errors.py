"""Errors meant for the person at the terminal: one screen, no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can mend: what is wrong, where it came from, and the way out.

    what: the thing and its value, one sentence. where: the file, key or override it came from, or "".
    way_out: what to do instead. exit_code: 2 for wrong usage (the default), 1 for work that failed.
    """

    def __init__(self, what: str, where: str, way_out: str, exit_code: int = 2) -> None:
        super().__init__(what, where, way_out, exit_code)
        self.what = what
        self.where = where
        self.way_out = way_out
        self.exit_code = exit_code

    def __str__(self) -> str:
        where = f"\n  where: {self.where}" if self.where else ""
        way_out = f"\n  way out: {self.way_out}" if self.way_out else ""
        return f"{self.what}{where}{way_out}"


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """'did you mean "mdap"? ' when an option is close to `word`, else an empty string."""
    close = difflib.get_close_matches(word, list(options), n=1, cutoff=0.5)
    return f'did you mean "{close[0]}"? ' if close else ""


def listed(options: Iterable[str]) -> str:
    """Options as one sorted, comma-separated string for messages."""
    return ", ".join(sorted(options))
