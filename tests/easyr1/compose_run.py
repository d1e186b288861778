"""A run as the environment that has Hydra makes it: `python compose_run.py ROOT OVERRIDE...`.

Composes the cell, builds its starting policy where it is one that is built, and prints the run's folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.compose import compose_cell
from experiments.identity import run_id
from experiments.policies.prepare import prepare_policy
from experiments.run_directory import RunDirectory


def main(root: Path, overrides: list[str]) -> None:
    config = compose_cell([*overrides, f"paths.root={root}"])
    prepare_policy(config["model"], config["dataset"], root / "models", print)
    print(RunDirectory.create(root, run_id(config), config).path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
