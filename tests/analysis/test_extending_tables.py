"""docs/extending-tables.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from synthetic_study import FASTRL, GRPO, write_study

PROJECT = Path(__file__).parents[2]
RECIPE = PROJECT / "docs" / "extending-tables.md"
BLOCK = re.compile(r"^`(?P<path>[^`]+)`(?P<add> \(add\))?\n```\w+\n(?P<content>.*?)^```$", re.M | re.S)


def test_the_recipe_gives_a_table_in_every_format(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    for package in ("fastrl", "eval", "experiments", "analysis"):
        ignored = shutil.ignore_patterns("__pycache__", "results")
        shutil.copytree(PROJECT / package, copy / package, ignore=ignored)
    blocks = list(BLOCK.finditer(RECIPE.read_text(encoding="utf-8")))
    assert [block["path"] for block in blocks] == [
        "analysis/tables/tokens.py",
        "analysis/tables/__init__.py",
        "experiments/conf/study/tokens.yaml",
    ]
    for block in blocks:
        path = copy / block["path"]
        before = path.read_text(encoding="utf-8") + "\n" if block["add"] else ""
        path.write_text(before + block["content"], encoding="utf-8")
    write_study(tmp_path / "results", [replace(GRPO, seeds=1), replace(FASTRL, seeds=1)])
    command = re.search(r"^fastrl (report .*)$", RECIPE.read_text(encoding="utf-8"), re.M)
    assert command is not None
    first, *others = command[1].split()
    words = [first, f"paths.root={tmp_path / 'results'}", *others]
    environment = {**os.environ, "PYTHONPATH": str(copy)}

    def fastrl(*arguments: str) -> subprocess.CompletedProcess[str]:
        started = [sys.executable, "-m", "experiments", *arguments]
        return subprocess.run(
            started, cwd=copy, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    reported = fastrl(*words)
    assert reported.returncode == 0, reported.stderr
    tables = tmp_path / "results" / "studies" / "laptop" / "tables"
    assert sorted(path.name for path in tables.iterdir()) == ["tokens.csv", "tokens.md", "tokens.tex"]
    assert "Tokens of a step" in (tables / "tokens.md").read_text(encoding="utf-8")
    planned = fastrl("plan", "study=tokens")
    assert planned.returncode == 0, planned.stderr
    assert "2 cells" in planned.stdout
