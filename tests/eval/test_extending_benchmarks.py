"""docs/extending-benchmarks.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
RECIPE = PROJECT / "docs" / "extending-benchmarks.md"
BLOCK = re.compile(r"^`(?P<path>[^`]+)`(?P<add> \(add\))?\n```\w+\n(?P<content>.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^fastrl (.*)$", re.M)


def test_the_recipe_gives_a_benchmark_that_scores_and_evaluates(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    for package in ("fastrl", "eval", "experiments"):
        ignored = shutil.ignore_patterns("__pycache__", "results")
        shutil.copytree(PROJECT / package, copy / package, ignore=ignored)
    text = RECIPE.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert [block["path"] for block in blocks] == [
        "eval/protocols/divisors.py",
        "eval/protocols/__init__.py",
        "experiments/conf/benchmark_data/divisors.yaml",
        "experiments/conf/benchmark/divisors.yaml",
        "eval/tasks/divisors/divisors.yaml",
        "eval/tasks/divisors/task.py",
        "data/divisors/test.jsonl",
        "said.jsonl",
    ]
    for block in blocks:
        path = copy / block["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") + "\n" if block["add"] else ""
        path.write_text(before + block["content"], encoding="utf-8")
    score, evaluate, _ = (command.split() for command in COMMAND.findall(text))
    environment = {**os.environ, "PYTHONPATH": str(copy)}

    def fastrl(words: list[str]) -> str:
        command = [sys.executable, "-m", "experiments", *words]
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    scored = json.loads(fastrl(score))
    assert (scored["n"], scored["correct"], scored["extraction_failure_rate"]) == (3, 2, 1 / 3)
    assert scored["breakdowns"]["parity"]["odd"]["correct"] == 1
    assert "66.7%" in fastrl(evaluate)
    results = json.loads((copy / "out/divisors/results.json").read_text(encoding="utf-8"))
    assert results["decodings"]["greedy"]["breakdown"]["parity"]["even"] == {"n": 2, "accuracy": 0.5}
