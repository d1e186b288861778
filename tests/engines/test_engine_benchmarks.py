"""The engine's benchmark scripts run, at a tiny size, and print their tables."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script: str, arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [script, *arguments.split()])
    runpy.run_path(str(ROOT / "benchmarks" / script), run_name="__main__")


def test_gpu_step_prints_a_row_per_method(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "--device cpu --size tiny --dtype float32 --questions 4 --rollouts 4 --tokens 6 --prompt-tokens 5"
    run("gpu_step.py", f"{small} --updates 2 --steps 2 --threads 1 --kept 0.5 0.25", monkeypatch)
    title, header, *rows = capsys.readouterr().out.splitlines()
    assert "4 questions x 4 rollouts x 6 tokens" in title
    assert header.split() == ["gen", "reward", "adv", "select", "old", "ref", "update_actor", "step", "speed"]
    assert [row[:18].strip() for row in rows] == ["GRPO", "FastRL, 50% kept", "FastRL, 25% kept"]
    for row in rows:
        *stages, step = map(float, row[18:].split()[:-1])
        assert step == pytest.approx(sum(stages), abs=1e-3)


def test_sampling_compares_with_generate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("sampling.py", "--questions 3 --rollouts 2 --max-tokens 5 --repeats 1", monkeypatch)
    output = capsys.readouterr().out
    assert "transformers generate" in output
    assert output.endswith("greedy tokens equal to those of generate: True\n")


def test_the_engine_needs_nothing_but_torch_transformers_and_numpy() -> None:
    code = (
        "import sys, fastrl.engines.reference.loop\n"
        "others = 'hydra omegaconf submitit lm_eval pandas pyarrow matplotlib mlflow pydantic rich'.split()\n"
        "sys.exit(', '.join(name for name in others if name in sys.modules) or None)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert outcome.returncode == 0, outcome.stderr.decode()
