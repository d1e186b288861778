"""`python killed_training.py ROOT KILLS`: real trainings, one undisturbed, one killed at random moments.

Imports the train stage once and forks a process for each attempt. Prints JSON: the folders of the two runs,
and the packages that the train stage imports.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from experiments.run_directory import RunDirectory


def attempt(run: RunDirectory, killed_after: float | None) -> bool:
    """One attempt in a process of its own; True when it ended by itself."""
    from experiments.stage import run_stage

    pid = os.fork()
    if pid == 0:
        os._exit(run_stage(run, "train").exit_code)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the training failed: {run.status()['train'].error}")
    return code == 0


def main(root: Path, kills: int) -> None:
    importlib.import_module("experiments.train_stage")
    packages = sorted({module.partition(".")[0] for module in sys.modules})

    from experiments.policies.prepare import prepare_policy
    from experiments.study import plan_study

    settings = ["model.sft.steps=3", "training.epochs=3", "training.record_rollouts_every=3"]
    overrides = ["method=fastrl", "seed=0", *settings]
    plan, configs = plan_study("smoke", overrides, root)
    (cell,) = plan.cells
    config = configs[cell.run_id]
    runs = [RunDirectory.create(root / name, cell.run_id, config) for name in ("undisturbed", "killed")]
    prepare_policy(config["model"], config["dataset"], runs[0].root / "models", lambda line: None)
    (runs[1].root / "models").symlink_to(runs[0].root / "models")

    started = time.monotonic()
    attempt(runs[0], killed_after=None)
    took = time.monotonic() - started
    rng = random.Random(3)
    for _ in range(kills):
        attempt(runs[1], killed_after=rng.uniform(0.05, 0.6) * took)
        entry = runs[1].status().get("train")
        if entry is not None and entry.state == "running":
            # What a kill in the middle of writing leaves, whether or not this one came just then.
            runs[1].rollouts.mkdir(exist_ok=True)
            (runs[1].rollouts / ".step_3.parquet.0123abcd.draft").touch()
    attempt(runs[1], killed_after=None)
    print(json.dumps({"runs": [str(run.path) for run in runs], "packages": packages}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
