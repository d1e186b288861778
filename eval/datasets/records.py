"""Official record files as they are published: JSON, JSON lines (gzip or not) and parquet.

Images in parquet files stay there: a record holds references to them, which `eval.datasets.images` opens.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")

_DECODED = "decoded_"


class DataError(ValueError):
    """Benchmark data that is missing, changed or malformed; the message names the file and the way out."""


def read_records(path: Path, place: str) -> list[dict[str, Any]]:
    """The records of one file, in order. place: the file's path in references to images in it.

    A parquet column of images (structs with `bytes`) gives references `<place>::<column>::<row>[::<index>]`
    in place of its values. Hub sets that keep an image's path in `x` and the image itself in `decoded_x` get
    the reference in `x`. Raises DataError for a file of another kind and for one that cannot be read.
    """
    try:
        if path.name.endswith(".parquet"):
            return _parquet(path, place)
        if path.name.endswith((".jsonl", ".jsonl.gz")):
            return list(_lines(path))
        if path.name.endswith((".json", ".json.gz")):
            return _json(path)
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read: {error}; fetch it again") from error
    raise DataError(f"{path} is of no known kind; known: {', '.join(SUFFIXES)}")


def located(root: Path, reference: str) -> str:
    """A reference that can be opened from anywhere. Raises DataError for one that leaves the data folder."""
    path, separator, place = reference.partition("::")
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise DataError(f"the image reference {reference!r} leaves the data folder {root}")
    return f"{_image_path(root, path)}{separator}{place}"


def _image_path(root: Path, path: str) -> Path:
    """Where a file lies: some sets' paths start from the folder `images` in theirs."""
    inside = root / "images" / path
    return inside if inside.is_file() and not (root / path).is_file() else root / path


def _opened(path: Path) -> Any:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: {error}; fetch the file again") from error
            if not isinstance(record, dict):
                raise DataError(f"{path}, line {number}: {type(record).__name__} instead of an object")
            yield record


def _json(path: Path) -> list[dict[str, Any]]:
    with _opened(path) as file:
        content = json.load(file)
    records = list(content.values()) if isinstance(content, dict) else content
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{path} holds something other than a list, or a mapping, of objects")
    return records


def _parquet(path: Path, place: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        schema = file.schema_arrow
        images = [field.name for field in schema if _holds_images(field.type)]
        leaves = [file.schema.column(index).path for index in range(len(file.schema.names))]
        # The bytes are left where they are; a list column's other leaves say how many images a row has.
        wanted = [leaf for leaf in leaves if not (leaf.split(".")[0] in images and leaf.endswith(".bytes"))]
        records: list[dict[str, Any]] = file.read(columns=wanted).to_pylist()
    for row, record in enumerate(records):
        for name in images:
            record[name] = _references(record.get(name), f"{place}::{name}::{row}")
        for name in [name for name in images if name.startswith(_DECODED)]:
            record[name.removeprefix(_DECODED)] = record.pop(name)
    return records


def _holds_images(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return bool(pa.types.is_struct(kind)) and kind.get_field_index("bytes") >= 0


def _references(value: Any, reference: str) -> str | list[str] | None:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [f"{reference}::{index}" for index in range(len(value))]
    return None if value is None else reference
