"""Training sets that `fastrl data prepare` has written: parquet files, one per split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets.images import LazyImage
from eval.datasets.records import DataError, located, read_records
from fastrl.rollouts import Question


def folder_of(config: Mapping[str, Any]) -> Path:
    """The folder of a set's files."""
    return Path(config["root"]).expanduser()


def split_file(config: Mapping[str, Any], split: str) -> Path:
    """The parquet file of a split in the config's `root`; EasyR1 reads it as it is.

    Raises DataError saying how to prepare the set when it is not there.
    """
    path = folder_of(config) / f"{split}.parquet"
    if not path.is_file():
        raise DataError(
            f"{config['name']}: there is no {path}; run fastrl data prepare {config['name']}, or set "
            "dataset.root to the folder that it wrote"
        )
    return path


def questions(config: Mapping[str, Any], split: str) -> list[Question]:
    """The questions of a split, each followed by the config's `instruction`; images are opened when needed.

    Raises DataError for a file that is missing or damaged.
    """
    path = split_file(config, split)
    return pictured_questions(config, path.parent, split)


def pictured_questions(config: Mapping[str, Any], folder: Path, split: str) -> list[Question]:
    """The same from any folder that `eval.preparation.prepare` has written."""
    path = folder / f"{split}.parquet"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.parquet")))
        raise DataError(f"{config['name']} has no split {split!r}; it has {known}")
    records = read_records(path, path.name)
    instruction = config["instruction"]
    try:
        return [
            Question(
                id=record["question_id"],
                prompt=f"{record['problem']}\n{instruction}" if instruction else record["problem"],
                answer=record["answer"],
                family=record["family"],
                images=tuple(
                    LazyImage(located(folder, reference)) for reference in record.get("images") or ()
                ),
            )
            for record in records
        ]
    except KeyError as error:
        raise DataError(
            f"{config['name']}: {path} has no column {error}; prepare the set again with fastrl data prepare"
        ) from error
