"""Digests of the files that a report is made from, by content; an untouched file is not read again.

As git does it, an index holds the size, the inode and both times of each file beside its digest. A change of
content changes one of them (nobody can set a file's time of change), except within the clock's own grain: so
an entry is kept only of a file that had already lain there for a while.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from analysis.examples import ANSWER_COLUMNS
from analysis.sample_rows import NOTES, SAMPLE_COLUMNS
from experiments.atomic_files import file_system_time, write_json

_SETTLED_SECONDS = 2.0
_SAMPLES = "samples.parquet"
_READ = frozenset((*SAMPLE_COLUMNS, *ANSWER_COLUMNS))


def file_digests(paths: Iterable[Path], index: Path) -> Iterator[tuple[Path, str]]:
    """Each path with the digest of its content, "" for a file that is not there.

    Of `samples.parquet` only the columns and notes count that a report reads. index: what is remembered from
    one time to the next; once all have been given out it is written anew, with these files alone.
    """
    known, seen = _read(index), {}
    # By the clock that stamps the files, and before they are looked at.
    now = file_system_time(index.parent)
    for path in paths:
        try:
            stat = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            yield path, ""
            continue
        state = [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
        entry = known.get(str(path))
        if entry is None or entry[:-1] != state:
            entry = [*state, content_digest(path)]
        if now - stat.st_ctime > _SETTLED_SECONDS:
            seen[str(path)] = entry
        yield path, str(entry[-1])
    if seen != known:
        write_json(index, seen)


def content_digest(path: Path) -> str:
    """A digest of a file's content, of samples only of the columns that a report reads."""
    columns = _sample_columns(path) if path.name == _SAMPLES else None
    return hashlib.sha256(path.read_bytes() if columns is None else columns).hexdigest()


def _sample_columns(path: Path) -> bytes | None:
    """The bytes of a parquet file's columns as they lie there; None for a file that is no such file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path)
        groups = [found.row_group(index) for index in range(found.num_row_groups)]
        chunks = [group.column(index) for group in groups for index in range(found.num_columns)]
        rows = [group.num_rows for group in groups]
        notes = (found.metadata or {}).get(NOTES, b"")
        parts = [repr((found.schema.to_arrow_schema().names, rows, notes)).encode()]
        with path.open("rb") as stream:
            for chunk in (each for each in chunks if each.path_in_schema in _READ):
                offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
                stream.seek(min(offset for offset in offsets if offset))
                parts.append(f"{chunk.path_in_schema} {chunk.physical_type} {chunk.compression}".encode())
                parts.append(stream.read(chunk.total_compressed_size))
    except (pa.ArrowException, OSError, ValueError):
        return None
    return b"\n".join(parts)


def _read(index: Path) -> dict[str, list[object]]:
    try:
        known = json.loads(index.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(known, dict) and all(isinstance(entry, list) and entry for entry in known.values())
    return known if whole else {}
