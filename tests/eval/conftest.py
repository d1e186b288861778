"""What the tests of evaluations share: a tiny policy, and an undisturbed evaluation of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_evaluation import run
from tiny_policy import build_tiny_policy


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_policy(tmp_path_factory.mktemp("run") / "checkpoints" / "final")


@pytest.fixture(scope="session")
def evaluated(policy: Path) -> Path:
    """The output folder of an undisturbed evaluation, inside the run of the policy."""
    output = policy.parents[1] / "eval" / "laptop_geometry"
    run(policy, output)
    return output
