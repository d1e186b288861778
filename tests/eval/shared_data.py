"""Public benchmark data beside the project, for agreement tests; they are skipped where it is absent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared_data() -> Path:
    """The folder of public benchmark data. Skips the test when there is none."""
    if not _FOLDER.is_dir():
        pytest.skip(f"no public benchmark data at {_FOLDER}")
    return _FOLDER


def shared_records(name: str) -> list[dict[str, Any]]:
    """The records of a .jsonl or .jsonl.gz file of the folder. Skips the test when there is none."""
    path = shared_data() / name
    if not path.is_file():
        pytest.skip(f"no public benchmark data at {path}")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.decode().splitlines() if line.strip()]
