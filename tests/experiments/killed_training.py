"""`python killed_training.py ROOT KILLS`: real trainings, one undisturbed, one killed at random moments.

Imports the train stage once and forks a process for each attempt. Prints the two runs' folders.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from experiments import train_stage as _warm_import  # noqa: F401
from experiments.run_directory import RunDirectory
from experiments.stage import run_stage
from experiments.study import plan_study


def attempt(run: RunDirectory, killed_after: float | None) -> bool:
    """One attempt in a process of its own; True when it ended by itself."""
    pid = os.fork()
    if pid == 0:
        os._exit(run_stage(run, "train").exit_code)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, -signal.SIGKILL):
        print(run.status()["train"].error, file=sys.stderr)
        sys.exit(1)
    return code == 0


def main(root: Path, kills: int) -> None:
    overrides = ["method=fastrl", "seed=0", "model.sft.steps=3", "training.epochs=5"]
    plan, configs = plan_study("smoke", overrides, root)
    (cell,) = plan.cells
    runs = [
        RunDirectory.create(root / name, cell.run_id, configs[cell.run_id])
        for name in ("undisturbed", "killed")
    ]
    started = time.monotonic()
    attempt(runs[0], killed_after=None)
    took = time.monotonic() - started
    rng = random.Random(3)
    for _ in range(kills):
        attempt(runs[1], killed_after=rng.uniform(0.02, 0.6) * took)
    while not attempt(runs[1], killed_after=None):
        pass
    print(*(run.path for run in runs), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
