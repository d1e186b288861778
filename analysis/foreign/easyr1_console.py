"""EasyR1's console: `Config` and `Step N`, each on a line of its own, and under it a mapping in YAML.

Its numbers have three decimals. Formats are those of `verl/utils/logger/logger.py` and
`verl/utils/py_functional.py` in EasyR1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.foreign.console import Line, console_lines, printed_number
from analysis.foreign.log import WHOLE_STEP, Entry, damaged

_HEADING = re.compile(r"Config|Step (\d+)")
_ENTRY = re.compile(r"( *)([\w./@%+-]+):(?: (.*))?")
_TAG = "!!"
"""Begins a value that is no plain number; YAML writes what it holds on deeper lines, or as a list."""

_TRAINING, _VALIDATION = "timing_s/", "val/"


@dataclass(frozen=True)
class ConsoleLog:
    """config: numbers by dotted path, empty when the console does not show it."""

    config: dict[str, float]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Block:
    """A heading and the lines under it. last: whether the file ends with it."""

    heading: Line
    lines: tuple[Line, ...]
    last: bool

    @property
    def step(self) -> int | None:
        found = _HEADING.fullmatch(self.heading.text)
        return int(found[1]) if found and found[1] else None


def read_console(path: Path) -> ConsoleLog:
    """The configuration and the steps among all that a console showed.

    Raises UserError for a file that can't be read, and for a step whose lines are damaged, naming the line.
    """
    config: dict[str, float] = {}
    entries = []
    for block in _blocks(path):
        numbers, wrong = _numbers(block.lines)
        if block.step is None:
            config = config or {key.replace("/", "."): value for key, value in numbers.items()}
        elif any(key.startswith((_TRAINING, _VALIDATION)) for key in numbers):  # a response may say "Step 1"
            if wrong is not None:
                raise damaged(path, wrong.number, f'"{wrong.text.strip()[:60]}" is no key with a number')
            trained = any(key.startswith(_TRAINING) for key in numbers)
            if not trained or WHOLE_STEP in numbers:
                entries.append(Entry(block.heading.number, block.step, numbers))
            elif not block.last:
                raise damaged(path, block.heading.number, f"step {block.step} has no {WHOLE_STEP}")
    return ConsoleLog(config, tuple(entries))


def _blocks(path: Path) -> Iterator[_Block]:
    """Headings with the lines of the same worker under them that can be YAML's."""
    heading: Line | None = None
    lines: list[Line] = []
    for line in console_lines(path):
        if heading is not None and line.source != heading.source:
            continue
        if heading is not None and not _HEADING.fullmatch(line.text) and _can_be_yaml(line.text):
            lines.append(line)
            continue
        if heading is not None:
            yield _Block(heading, tuple(lines), last=False)
        heading, lines = (line if _HEADING.fullmatch(line.text) else None), []
    if heading is not None:
        yield _Block(heading, tuple(lines), last=True)


def _can_be_yaml(text: str) -> bool:
    return text.startswith((" ", "- ")) or _ENTRY.fullmatch(text) is not None


def _numbers(lines: Sequence[Line]) -> tuple[dict[str, float], Line | None]:
    """The numbers of a mapping by their path, and the first line that is neither a key nor a number of it."""
    numbers: dict[str, float] = {}
    wrong: Line | None = None
    path: list[tuple[int, str]] = []
    tagged: int | None = None
    for line in lines:
        found = _ENTRY.fullmatch(line.text)
        depth = len(line.text) - len(line.text.lstrip(" "))
        if tagged is not None and (depth > tagged or line.text.lstrip(" ").startswith("- ")):
            continue
        tagged = None
        if found is None:
            wrong = wrong or line
            continue
        while path and path[-1][0] >= depth:
            path.pop()
        path.append((depth, found[2]))
        text = (found[3] or "").strip()
        value = printed_number(text)
        if value is not None:
            numbers["/".join(key for _, key in path)] = value
        elif text.startswith(_TAG):
            tagged = depth
        elif text not in ("", "null", "true", "false"):
            wrong = wrong or line
    return numbers, wrong
