"""Generated responses on disk, batch by batch: what a killed evaluation goes on from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eval.models.response import Response


class Journal:
    """An append-only file of one decoding: a line that says what it is of, then a line per finished batch.

    A line counts once it is whole and on the disk; a half-written last line is cut off when the file is
    opened again.
    """

    def __init__(self, path: Path, origin: Mapping[str, str], announce: Callable[[str], None]) -> None:
        """Open the journal at `path`; batches of another origin, or unreadable ones, are dropped and said."""
        self._path = path
        self._head = {"origin": dict(origin)}
        self._batches: dict[tuple[int, ...], list[Response]] = {}
        self._whole = 0
        self.seconds = 0.0
        self._recover(announce)

    def __len__(self) -> int:
        """How many batches are finished."""
        return len(self._batches)

    def finished(self, batch: Sequence[int]) -> list[Response] | None:
        """The responses to a batch of requests, by their indices; None when it is not finished."""
        return self._batches.get(tuple(batch))

    def append(self, batch: Sequence[int], responses: Sequence[Response], seconds: float) -> None:
        """Put a finished batch on the disk. Raises OSError naming the file, which is then as it was."""
        line = {
            "requests": list(batch),
            "responses": [[str(text), text.tokens, text.truncated] for text in responses],
            "seconds": seconds,
        }
        lines = [line] if self._whole else [self._head, line]
        self._write("".join(json.dumps(entry) + "\n" for entry in lines).encode())
        self._batches[tuple(batch)] = list(responses)
        self.seconds += seconds

    def remove(self) -> None:
        """Delete the file, once its content is in a record."""
        self._path.unlink(missing_ok=True)

    def _recover(self, announce: Callable[[str], None]) -> None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        whole = 0
        for line in content.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                if not whole and entry != self._head:
                    break
                if whole:
                    self._remember(entry)
            except (KeyError, TypeError, ValueError):
                announce(f"{self._path} is damaged after {len(self)} batches; going on from there")
                break
            whole += len(line)
        self._whole = whole

    def _remember(self, entry: Mapping[str, object]) -> None:
        requests, responses, seconds = entry["requests"], entry["responses"], entry["seconds"]
        if not isinstance(requests, list) or not isinstance(responses, list):
            raise TypeError("a batch holds lists")
        if len(requests) != len(responses) or not isinstance(seconds, float | int):
            raise ValueError("a batch has a response for each request, and its seconds")
        self._batches[tuple(requests)] = [Response(*response) for response in responses]
        self.seconds += seconds

    def _write(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.ftruncate(descriptor, self._whole)
            os.lseek(descriptor, self._whole, os.SEEK_SET)
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, self._whole)
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        finally:
            os.close(descriptor)
        self._whole += len(data)


@contextmanager
def recorded(model: Any, journal: Journal | None) -> Iterator[None]:
    """Within it, the model keeps finished batches in the journal and takes them from there."""
    model.journal = journal
    try:
        yield
    finally:
        model.journal = None
