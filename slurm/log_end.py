"""The end of a log, whatever its size."""

from __future__ import annotations

from pathlib import Path

_BYTES = 16384


def log_end(path: Path) -> str:
    """The last lines of a log, whole ones; "" without one."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _BYTES))
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return text.partition("\n")[2] if size > _BYTES else text
