"""What a run showed on its console, line by line, as it was kept in a file.

Ray puts the name of the worker before each line that it passes on, in colours:
`(TaskRunner pid=4711, ip=10.0.0.2) step:1 - ...`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import UserError

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SOURCE = re.compile(r"\(([^()]*\bpid=\d+[^()]*)\) ?")
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*")
_PROGRESS = re.compile(r"\d+%\|")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.?inf|\.?nan)", re.IGNORECASE | re.ASCII)
_TYPED = re.compile(r"np\.\w+\((.*)\)")


@dataclass(frozen=True)
class Line:
    """number: in the file, from 1. source: the worker that wrote it, "" without Ray."""

    number: int
    source: str
    text: str


def console_lines(path: Path) -> Iterator[Line]:
    """The lines of a console without colours and progress bars; a last line that was cut off is left out.

    Raises UserError for a file that can't be read.
    """
    try:
        with path.open("rb") as stream:
            for number, content in enumerate(stream, start=1):
                if not content.endswith(b"\n"):
                    return
                text = _COLOURS.sub("", content.decode("utf-8", "replace")).rstrip("\r\n").rpartition("\r")[2]
                found = _SOURCE.match(text)
                own = _REPEATED.sub("", text[found.end() :] if found else text)
                if not _PROGRESS.search(own):
                    yield Line(number, found[1] if found else "", own)
    except OSError as error:
        raise UserError(
            f"The log can't be read: {error}.", str(path), "name the file of the log", 1
        ) from None


def printed_number(text: str) -> float | None:
    """A number as Python, NumPy or YAML print it (`0.5`, `np.float64(0.5)`, `.nan`); None for other text."""
    typed = _TYPED.fullmatch(text)
    bare = typed[1] if typed else text
    if not _NUMBER.fullmatch(bare):
        return None
    return float(bare.lower().replace(".inf", "inf").replace(".nan", "nan"))
