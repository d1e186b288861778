"""Files of recorded trajectories, read a batch of rows at a time: parquet and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from experiments.errors import UserError
from experiments.offline.rollout_format import Columns, RolloutFormat, columns_in
from experiments.offline.rows import Rows

Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Token ids of each text, without special tokens."""

BATCH_ROWS = 4096


@dataclass(frozen=True)
class RolloutFile:
    """A file of trajectories. encode: for files that hold text alone, None without a tokenizer."""

    path: Path
    rollout_format: RolloutFormat
    encode: Encode | None

    def batches(self) -> Iterator[Rows]:
        """All rows in order. Raises UserError for a damaged file, a missing column or a value of a wrong
        type."""
        if self.path.suffix == ".parquet":
            return self._parquet_rows()
        return self._json_rows()

    def last_step(self) -> int:
        """The last row's step, read without the rest of the file."""
        if self.path.suffix == ".parquet":
            file = self._open()
            columns = self._columns(file.schema_arrow.names)
            if not file.metadata.num_rows:
                raise no_rows(self.path)
            filled = [i for i in range(file.num_row_groups) if file.metadata.row_group(i).num_rows]
            return int(file.read_row_group(filled[-1], columns=[columns.step])[columns.step][-1].as_py())
        record = _last_record(self.path)
        return _whole(record[self._columns(list(record)).step], str(self.path))

    def _open(self) -> Any:
        try:
            return pq.ParquetFile(self.path)
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(
                f"{self.path.name} can't be read as parquet: {error}.", str(self.path), "record it again", 1
            ) from None

    def _columns(self, available: Sequence[str]) -> Columns:
        columns = columns_in(available, self.rollout_format, str(self.path))
        if columns.tokens is None and self.encode is None:
            raise UserError(
                f"{self.path.name} holds the text of responses ({columns.response}), not token ids.",
                str(self.path),
                "name the tokenizer of the policy: --tokenizer FOLDER_OR_NAME",
            )
        return columns

    def _parquet_rows(self) -> Iterator[Rows]:
        file = self._open()
        columns = self._columns(file.schema_arrow.names)
        done = 0
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns.names):
            where = f"{self.path}, row {done + 1}"
            done += batch.num_rows
            try:
                yield self._rows_of(batch, columns, where)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
                raise UserError(
                    f"A value in the {batch.num_rows} rows from here has a wrong type: {error}.",
                    where,
                    "step is a whole number, reward a number, tokens a list of whole numbers",
                ) from None

    def _rows_of(self, batch: Any, columns: Columns, where: str) -> Rows:
        for name in columns.names:
            if batch.column(name).null_count and name not in (columns.reward, columns.accuracy):
                raise UserError(f"The column {name} has an empty value.", where, "leave such rows out")
        tokens, lengths = self._tokens_of(batch, columns)
        question = np.array(_keys(batch.column(columns.question)), dtype=object)
        return Rows(
            step=np.asarray(batch.column(columns.step).cast(pa.int64())),
            group=question
            if columns.group is None
            else np.array(_keys(batch.column(columns.group)), dtype=object),
            question=question,
            tokens=tokens,
            lengths=lengths,
            reward=_numbers(batch.column(columns.reward)),
            accuracy=np.full(batch.num_rows, np.nan)
            if columns.accuracy is None
            else _numbers(batch.column(columns.accuracy)),
            where=where,
        )

    def _tokens_of(self, batch: Any, columns: Columns) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        if columns.tokens is None:
            assert self.encode is not None
            texts = [_text(value) for value in batch.column(columns.response).to_pylist()]
            return _flat(self.encode(texts))
        lists = batch.column(columns.tokens).cast(pa.list_(pa.int32()))
        offsets = np.asarray(lists.offsets).astype(np.int64)
        return np.asarray(lists.flatten()), np.diff(offsets)

    def _json_rows(self) -> Iterator[Rows]:
        columns: Columns | None = None
        records: list[dict[str, Any]] = []
        first = 1
        for number, record in _json_records(self.path):
            if columns is None:
                columns = self._columns(list(record))
            optional = (columns.reward, columns.accuracy)
            missing = [name for name in columns.names if record.get(name) is None and name not in optional]
            if missing:
                raise UserError(
                    f"A record has no {missing[0]}.", f"{self.path}, line {number}", "leave such records out"
                )
            records.append(record)
            if len(records) == BATCH_ROWS:
                yield self._rows_of_records(records, columns, first)
                records, first = [], number + 1
        if columns is not None and records:
            yield self._rows_of_records(records, columns, first)

    def _rows_of_records(self, records: Sequence[Mapping[str, Any]], columns: Columns, first: int) -> Rows:
        where = f"{self.path}, line {first}"
        if columns.tokens is not None:
            ids = [record[columns.tokens] for record in records]
            for value in ids:
                if not isinstance(value, list) or not all(type(token) is int for token in value):
                    raise UserError(
                        f"A record from here on has no list of token ids in {columns.tokens}.",
                        where,
                        "give lists of whole numbers, or leave the column out and name a tokenizer",
                    )
        else:
            assert self.encode is not None and columns.response is not None
            ids = list(self.encode([_text(record[columns.response]) for record in records]))
        tokens, lengths = _flat(ids)
        question = np.array([_key(record[columns.question]) for record in records], dtype=object)
        return Rows(
            step=np.array([_whole(record[columns.step], where) for record in records], dtype=np.int64),
            group=question
            if columns.group is None
            else np.array([_key(record[columns.group]) for record in records], dtype=object),
            question=question,
            tokens=tokens,
            lengths=lengths,
            reward=np.array([_number(record.get(columns.reward), where) for record in records]),
            accuracy=np.array([_number(record.get(columns.accuracy or ""), where) for record in records]),
            where=where,
        )


def _json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, _record(line, f"{path}, line {number}")


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UserError(f"This is no JSON: {error}.", where, "one object a line is needed", 1) from None
    if not isinstance(record, dict):
        raise UserError(f"This is a {type(record).__name__}.", where, "one object a line is needed", 1)
    return record


def _last_record(path: Path) -> dict[str, Any]:
    size, block = path.stat().st_size, 1 << 16
    with path.open("rb") as stream:
        while True:
            start = max(size - block, 0)
            stream.seek(start)
            lines = [line for line in stream.read().split(b"\n") if line.strip()]
            if len(lines) > 1 or (lines and start == 0):
                return _record(lines[-1].decode("utf-8", "replace"), f"{path}, last line")
            if start == 0:
                raise no_rows(path)
            block *= 4


def no_rows(path: Path) -> UserError:
    """What to tell the user about a file without trajectories."""
    return UserError(f"{path.name} holds no trajectory.", str(path), "name a file with recorded rollouts")


def _flat(ids: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    return np.fromiter((token for row in ids for token in row), np.int32, int(lengths.sum())), lengths


def _text(value: Any) -> str:
    """A response as text; of a conversation, the contents of its messages."""
    if isinstance(value, str):
        return value
    messages = value if isinstance(value, list) else [value]
    return "".join(str(message.get("content") or "") for message in messages if isinstance(message, dict))


def _keys(column: Any) -> list[Any]:
    return [_key(value) for value in column.to_pylist()]


def _key(value: Any) -> Any:
    """Something that tells groups or questions apart; conversations by their JSON."""
    return value if isinstance(value, str | int) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _whole(value: Any, where: str) -> int:
    if isinstance(value, int | float) and value == int(value):
        return int(value)
    raise UserError(
        f"The step {value!r} is no whole number.", where, "give each trajectory its training step"
    )


def _numbers(column: Any) -> NDArray[np.float64]:
    """A column as numbers, NaN where it is empty."""
    return np.asarray(column.cast(pa.float64()).fill_null(float("nan")))


def _number(value: Any, where: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, int | float):
        return float(value)
    raise UserError(
        f"The reward or accuracy {value!r} is no number.",
        where,
        "name the column of the total reward: columns.reward=NAME",
    )
