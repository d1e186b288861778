"""Columns of an evaluation's parquet files, refused by file where they can't be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.record_error import RecordError

if TYPE_CHECKING:
    from pyarrow import Table

_RUNS = "runs"


def read_columns(path: Path, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Table:
    """The columns of a file under the `runs` or `models` of a results folder; `dictionary` ones encoded so.

    Raises RecordError for a file that is missing, damaged or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, read_dictionary=list(dictionary)) as file:
            missing = [name for name in columns if name not in file.schema_arrow.names]
            if missing:
                raise RecordError(place(path), f"no column {missing[0]}")
            return file.read(columns=list(columns), use_threads=False)
    except FileNotFoundError:
        raise RecordError(place(path), "the samples of a finished evaluation are missing") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RecordError(place(path), f"can't be read: {str(error).splitlines()[0]}") from None


def place(path: Path) -> str:
    """A file of an evaluation, from its results folder on."""
    parts = path.parts[-5:]
    return "/".join(parts if parts[0] == _RUNS else parts[1:])
