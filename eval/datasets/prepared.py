"""Training sets that `fastrl data prepare` has written: parquet files, one per split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError, read_records
from fastrl.rollouts import Question


def split_file(config: Mapping[str, Any], split: str) -> Path:
    """The parquet file of a split in the config's `root`; EasyR1 reads it as it is.

    Raises DataError saying how to prepare the set when it is not there.
    """
    path = Path(config["root"]).expanduser() / f"{split}.parquet"
    if not path.is_file():
        raise DataError(
            f"{config['name']}: there is no {path}; run fastrl data prepare {config['name']}, or set "
            "dataset.root to the folder that it wrote"
        )
    return path


def questions(config: Mapping[str, Any], split: str) -> list[Question]:
    """The questions of a split of a set without images, each followed by the config's `instruction`.

    Raises DataError for a file that is missing or damaged, and for a set with images.
    """
    path = split_file(config, split)
    records = read_records(path, path.name)
    if any(record.get("images") for record in records):
        raise DataError(
            f"{config['name']}: {path} holds questions with images, which only EasyR1 trains on; give it the "
            "file as data.train_files"
        )
    try:
        return [
            Question(
                id=record["question_id"],
                prompt=f"{record['problem']}\n{config['instruction']}",
                answer=record["answer"],
                family=record["family"],
            )
            for record in records
        ]
    except KeyError as error:
        raise DataError(
            f"{config['name']}: {path} has no column {error}; prepare the set again with fastrl data prepare"
        ) from error
