"""Rows of source files (parquet, JSON lines, JSON), one at a time, each with the place it stands in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError

_BATCH = 64


def rows(paths: Sequence[Path], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of files in order; a place is the file's path in `folder` and its row, from 0.

    A parquet file is read a few rows at a time. Raises DataError naming file and row for what can't be read.
    """
    for path in paths:
        name = path.relative_to(folder).as_posix()
        number = 0
        try:
            for row in _file_rows(path):
                if not isinstance(row, dict):
                    raise DataError(
                        f"{name}, row {number}: {type(row).__name__}, not an object; fetch the file again"
                    )
                yield f"{name}, row {number}", row
                number += 1
        except (OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}, row {number}: cannot be read: {error}; fetch the file again") from error


def field(row: dict[str, Any], names: Sequence[str], place: str) -> Any:
    """The value of the first of `names` that a row has. Raises DataError naming the row when it has none."""
    for name in names:
        if name in row:
            return row[name]
    raise DataError(f"{place}: there is no {' or '.join(names)} in it, but {', '.join(row) or 'nothing'}")


def _file_rows(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:  # pyarrow's errors are ValueError and OSError
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from batch.to_pylist()
    elif path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())
    elif path.suffix == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        yield from content if isinstance(content, list) else [content]
    else:
        raise DataError(f"{path} is of no known kind; known: .parquet, .jsonl, .json")
