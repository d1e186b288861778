"""Studies that never ran, shared by the tests that only read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_study import FULL_ARMS, LAG_ARMS, write_study

from analysis.study import Study, load_study


@pytest.fixture(scope="session")
def full_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results root with the study `full`: every kind of arm, five seeds each. Read only."""
    root = tmp_path_factory.mktemp("full")
    write_study(root, FULL_ARMS, "full")
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
