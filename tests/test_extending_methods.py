"""docs/extending-methods.md, followed to the letter in a copy of the project, and its method trained."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
RECIPE = PROJECT / "docs" / "extending-methods.md"
BLOCK = re.compile(r"^`(?P<path>[^`]+)`(?P<add> \(add\))?\n```\w+\n(?P<content>.*?)^```$", re.M | re.S)


@pytest.fixture
def extended_project(tmp_path: Path) -> Path:
    copy = tmp_path / "project"
    for package in ("fastrl", "eval", "experiments", "analysis"):
        shutil.copytree(
            PROJECT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "results")
        )
    blocks = list(BLOCK.finditer(RECIPE.read_text(encoding="utf-8")))
    assert [block["path"] for block in blocks] == [
        "fastrl/selectors/shortest.py",
        "fastrl/selectors/__init__.py",
        "experiments/conf/method/selector/shortest.yaml",
        "experiments/conf/method/shortest.yaml",
    ]
    for block in blocks:
        path = copy / block["path"]
        before = path.read_text(encoding="utf-8") + "\n" if block["add"] else ""
        path.write_text(before + block["content"], encoding="utf-8")
    return copy


@pytest.mark.slow
def test_the_recipe_gives_a_method_that_trains(extended_project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments", "run", "study=smoke", "method=shortest", "seed=0"]
    command += ["training.epochs=1", f"paths.root={tmp_path / 'results'}", "--no-report"]
    environment = {**os.environ, "PYTHONPATH": str(extended_project), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        cwd=extended_project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "results" / "runs").glob("shortest-*")
    assert (run / "checkpoints" / "final").is_dir()
