"""Studies that never ran, shared by the tests that only read them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic_images import write_image_study
from synthetic_study import FULL_ARMS, LAG_ARMS, MAIN_ARMS, write_study

from analysis.study import Study, load_study
from analysis.tracking.store import default_uri, open_client

CORRELATION = {
    "schema": 1,
    "trajectories": 2048,
    "groups": 256,
    "correlations": [
        {
            "subset": subset,
            "pairs": pairs,
            "pearson": {"value": value, "n": 250, "ci": [value - 0.04, value + 0.04]},
            "spearman": {"value": value - 0.05, "n": 250, "ci": [value - 0.1, value]},
        }
        for subset, pairs, value in (
            ("all", 4100, 0.71),
            ("both correct", 2900, 0.66),
            ("both wrong", 1200, 0.5),
        )
    ],
}
"""What `fastrl correlate` writes, as far as Figure 5 reads it."""


@pytest.fixture(scope="session")
def full_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results root with the study `full`: every kind of arm, five seeds each. Read only."""
    root = tmp_path_factory.mktemp("full")
    write_study(root, FULL_ARMS, "full")
    correlated = root / "studies" / "full" / "correlate" / "correlate.json"
    correlated.parent.mkdir()
    correlated.write_text(json.dumps(CORRELATION))
    return root


@pytest.fixture(scope="session")
def full(full_root: Path) -> Study:
    return load_study(full_root, "full")


@pytest.fixture(scope="session")
def lag(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study `lag`: two seeds of each lag arm."""
    root = tmp_path_factory.mktemp("lag")
    write_study(root, LAG_ARMS, "lag", baseline="GRPO, 4 updates, lr 2e-4")
    return load_study(root, "lag")


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study `images`: five seeds of each main method, on questions with images."""
    root = tmp_path_factory.mktemp("images")
    write_image_study(root, MAIN_ARMS, "images")
    return load_study(root, "images")


@pytest.fixture(scope="session")
def study_for(full: Study, lag: Study, images: Study) -> Callable[[str], Study]:
    """The study that has what a table or figure of the registries shows, by its name."""
    special = {"lag": lag, "examples": images, "images": images}
    return lambda name: special.get(name, full)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with MLflow's tables, which take seconds to make."""
    root = tmp_path_factory.mktemp("empty")
    open_client(default_uri(root))
    return root / "tracking" / "mlflow.db"


@pytest.fixture
def tracked_root(tmp_path: Path, empty_store: Path) -> Path:
    """A results root with an empty store."""
    (tmp_path / "tracking").mkdir()
    shutil.copy(empty_store, tmp_path / "tracking" / "mlflow.db")
    return tmp_path
