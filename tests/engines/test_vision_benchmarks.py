"""The benchmarks of images run, at a tiny size, and print their tables."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = "--questions 3 --rollouts 2 --max-tokens 4"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def printed(name: str, arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [name, *arguments.split()])
        monkeypatch.syspath_prepend(ROOT)
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return printed


def test_a_steps_stages_with_the_tower_frozen_and_trained(run) -> None:  # type: ignore[no-untyped-def]
    lines = run("vision", f"{TINY} --updates 2 --steps 2 --sizes 1 --kept 0.5")
    rows = [line for line in lines if ", tower " in line]
    assert [row[:32].strip() for row in rows] == [
        f"{method}, tower {tower}"
        for tower in ("frozen", "trained")
        for method in ("GRPO", "FastRL, 50% kept")
    ]
    for row in rows:
        *stages, step = map(float, row[32:].split()[:-1])
        assert step == pytest.approx(sum(stages), abs=1e-3)
    assert lines[-1].split()[:4] == ["84", "x", "56", "6"]


def test_the_engines_path_is_compared_with_transformers(run) -> None:  # type: ignore[no-untyped-def]
    lines = run("vision_paths", f"{TINY} --updates 2 --repeats 1")
    assert sum("transformers'" in line and "CPU-ms" in line for line in lines) == 3
    assert float(lines[-1].split()[5]) < 1e-5
