"""Hydra's launcher `fastrl_slurm`: a plain `--multirun` sweep goes to Slurm as `fastrl submit` sends a study.

  python -m experiments.train --multirun hydra/launcher=fastrl_slurm cluster=my_site method=grpo,fastrl

It returns as soon as the jobs are in the queue; no job waits for another cell's, and a failed one hides none.
`hydra.launcher.retry=all` sends stages that ended badly again, `hydra.launcher.canary=true` one cell first.

Hydra imports this module whenever it starts, so that all else is imported when something is launched.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, filter_overrides
from hydra.plugins.launcher import Launcher
from omegaconf import open_dict

if TYPE_CHECKING:
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

    from experiments.study import SweepCell

ConfigStore.instance().store(
    group="hydra/launcher",
    name="fastrl_slurm",
    node={"_target_": f"{__name__}.FastrlSlurmLauncher", "retry": None, "canary": False},
    provider="fastrl",
)


class FastrlSlurmLauncher(Launcher):  # type: ignore[misc]
    """retry: null, `failed`, `lost` or `all`; canary: whether one cell goes first; as of `fastrl submit`."""

    def __init__(self, retry: str | None, canary: bool) -> None:
        self._retry, self._canary = retry, canary

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        # The task itself is not called: a job runs the stages of its cell.
        self._context, self._config = hydra_context, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Send every cell of the sweep; the return value of each is its run id. Exits on an error."""
        from experiments.errors import UserError
        from experiments.identity import run_id
        from slurm.multirun import submit_sweep

        try:
            cells = [self._cell(overrides) for overrides in job_overrides]
            submit_sweep(cells, self._retry, self._canary)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(error.exit_code) from None
        # Hydra raises for a job that has not completed; from here on the queue has them.
        return [
            JobReturn(
                overrides=list(overrides), status=JobStatus.COMPLETED, _return_value=run_id(cell.config)
            )
            for overrides, cell in zip(job_overrides, cells, strict=True)
        ]

    def _cell(self, overrides: Sequence[str]) -> SweepCell:
        from experiments.compose import resolve_cell
        from experiments.config_tree import CONF, ConfigTree
        from experiments.study import SweepCell

        composed: Any = self._context.config_loader.load_sweep_config(self._config, list(overrides))
        own = tuple(filter_overrides(overrides))
        choices = {str(group): choice for group, choice in composed.hydra.runtime.choices.items()}
        with open_dict(composed):
            del composed["hydra"]
        return SweepCell(resolve_cell(ConfigTree(composed, choices, own, (CONF,))), own)
