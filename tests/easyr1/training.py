"""Trainings of tiny cells, each in a process of its own, and what they leave behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from image_witness import read_witness
from tiny_assets import Assets

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Trained:
    """checksum: sha256 of the trained weights, "" when training was stopped. steps: the step records.

    seen: the rows that the models were given, of a training that was watched.
    """

    checksum: str
    steps: list[dict[str, Any]]
    rollouts: list[dict[str, Any]]
    log: str
    seen: list[dict[str, Any]]


def train_cell(
    folder: Path,
    assets: Assets,
    config: dict[str, Any],
    vanilla: bool = False,
    stop_after: int | None = None,
    fails: bool = False,
    run: str = "tiny",
    watch_images: bool = False,
) -> Trained:
    """Train a cell in `folder`, from its checkpoint if it has one; stop after so many records if asked to.

    fails: the training is to end with an error, which the log then holds. watch_images: see `image_witness`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    home = os.environ.get("EASYR1_HOME")
    files = {
        "policy": str(assets.policy),
        "train": str(assets.train),
        "validation": str(assets.validation),
        "format_prompt": None,
        "chat_template": None,
        "reward": str(assets.reward),
        "reward_arguments": {"format_weight": 0.5},
        "checkpoints": str(folder / "checkpoints"),
    }
    spec = {
        "config": {**config, "engine": {**config["engine"], "home": home}},
        "run": run,
        "files": files,
        "steps": str(folder / "steps.jsonl"),
        "rollouts": str(folder / "rollouts.json"),
        "final": str(folder / "final"),
        "vanilla": vanilla,
        "stop_after": stop_after,
        "watch_images": watch_images,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    result = subprocess.run(
        [sys.executable, str(_ROOT / "tests" / "easyr1" / "run_cell.py"), str(folder / "spec.json")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "HF_HUB_OFFLINE": "1", "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    log = result.stdout + result.stderr
    assert (result.returncode != 0) == fails, log[-6000:]
    weights = folder / "final" / "model.safetensors"
    steps, rollouts = folder / "steps.jsonl", folder / "rollouts.json"
    return Trained(
        checksum=hashlib.sha256(weights.read_bytes()).hexdigest() if weights.is_file() else "",
        steps=[json.loads(line) for line in steps.read_text().splitlines()] if steps.is_file() else [],
        rollouts=json.loads(rollouts.read_text()) if rollouts.is_file() else [],
        log=log,
        seen=read_witness(folder / "checkpoints"),
    )
