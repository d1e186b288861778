"""Writing prepared questions to a parquet file as EasyR1 reads them, a few at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.preparation.base import SourceQuestion

_GROUP_ROWS = 256
_GROUP_BYTES = 32 * 2**20


@dataclass(frozen=True)
class WrittenSplit:
    """What a split's file holds. repeated: questions that stood before, in this split or an earlier one."""

    rows: int
    images: int
    image_bytes: int
    repeated: int


class QuestionIds:
    """Stable ids: `<set>-<content id>`, and `-2`, `-3` ... for a question that occurs again in the set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: dict[str, int] = {}

    def next_id(self, question: SourceQuestion) -> tuple[str, bool]:
        """(id of the question, whether it has occurred before)."""
        content = question.content_id()
        times = self._seen[content] = self._seen.get(content, 0) + 1
        return f"{self._name}-{content}" + (f"-{times}" if times > 1 else ""), times > 1


def write_questions(
    path: Path, questions: Iterator[SourceQuestion], ids: QuestionIds, has_images: bool
) -> WrittenSplit:
    """Write all questions to `path`: question_id, problem, answer, family and, with images, their files.

    The same questions give the same bytes. At most some tens of megabytes of images are held at a time.
    """
    import pyarrow.parquet as pq

    schema = _schema(has_images)
    rows, images, image_bytes, repeated = 0, 0, 0, 0
    group: list[dict[str, Any]] = []
    group_bytes = 0
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as file:
        for question in questions:
            question_id, again = ids.next_id(question)
            row: dict[str, Any] = {
                "question_id": question_id,
                "problem": question.problem,
                "answer": question.answer,
                "family": question.family,
            }
            if has_images:
                row["images"] = [{"bytes": image, "path": None} for image in question.images]
            group.append(row)
            size = sum(map(len, question.images))
            group_bytes += size
            rows, images, image_bytes = rows + 1, images + len(question.images), image_bytes + size
            repeated += again
            if len(group) == _GROUP_ROWS or group_bytes >= _GROUP_BYTES:
                _write_group(file, group, schema)
                group, group_bytes = [], 0
        if group:
            _write_group(file, group, schema)
    return WrittenSplit(rows, images, image_bytes, repeated)


def _write_group(file: Any, group: list[dict[str, Any]], schema: Any) -> None:
    import pyarrow as pa

    file.write_table(pa.Table.from_pylist(group, schema=schema))


def _schema(has_images: bool) -> Any:
    """Arrow's schema, with the hub's own features beside it so that `datasets` decodes the images."""
    import pyarrow as pa

    texts = ("question_id", "problem", "answer", "family")
    fields = [pa.field(name, pa.string()) for name in texts]
    features: dict[str, Any] = {name: {"dtype": "string", "_type": "Value"} for name in texts}
    if has_images:
        image = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
        fields.append(pa.field("images", pa.list_(image)))
        features["images"] = {"feature": {"_type": "Image"}, "_type": "Sequence"}
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})
