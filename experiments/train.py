"""Plain Hydra: train and evaluate one cell in this process, or a sweep of cells one after the other.

  python -m experiments.train method=fastrl seed=1
  python -m experiments.train --multirun method=grpo,fastrl seed=0,1
  python -m experiments.train --multirun method=grpo,fastrl hydra/launcher=fastrl_slurm cluster=my_site

The same tree, checks and run directories as `fastrl run`, which is the way to run many cells at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from experiments.compose import compose_cell, resolve_cell
from experiments.config_tree import CONF, ConfigTree
from experiments.errors import UserError
from experiments.identity import run_id
from experiments.run_directory import RunDirectory
from experiments.stage import run_stage
from experiments.sweep import expand


def run_cell(config: dict[str, Any]) -> int:
    """Run the stages of a resolved config; returns 0, or the exit code of the first that did not finish."""
    run = RunDirectory.create(Path(config["paths"]["root"]), run_id(config), config)
    for stage in ("train", *(f"evaluate-{benchmark}" for benchmark in config["benchmarks"])):
        print(f"{run.path}  {stage} ...", flush=True)
        outcome = run_stage(run, stage)
        print(f"{run.path}  {stage}: {outcome.state}", flush=True)
        if outcome.error is not None:
            print(f"error: {outcome.error.kind}: {outcome.error.message}", file=sys.stderr)
        if outcome.holder is not None:
            print(f"held by {outcome.holder}", file=sys.stderr)
        if outcome.exit_code:
            return outcome.exit_code
    return 0


def main(arguments: list[str]) -> int:
    """Run Hydra's application; returns 0, or the exit code of the first cell that did not finish."""
    codes: list[int] = []

    @hydra.main(  # type: ignore[untyped-decorator]
        config_path=str(CONF), config_name="config", version_base="1.3"
    )
    def application(config: DictConfig) -> None:
        job = HydraConfig.get()
        choices = {str(key): value for key, value in job.runtime.choices.items()}
        overrides = tuple(str(override) for override in job.overrides.task)
        tree = ConfigTree(config, choices, overrides, (CONF,))
        try:
            codes.append(run_cell(resolve_cell(tree)))
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            codes.append(error.exit_code)

    try:
        _check(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    application()
    return next((code for code in codes if code), 0)


def _check(arguments: list[str]) -> None:
    """Compose every cell before the first one runs: our messages and exit code instead of Hydra's."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    flags = set(arguments) - set(words)
    overrides = [word for word in words if not word.lstrip("+~").startswith(("hydra.", "hydra/"))]
    if flags <= {"-m", "--multirun"}:
        for cell in expand(overrides, (CONF,), "command line"):
            compose_cell(cell)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
