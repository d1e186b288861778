"""Starting and stopping the rehearsal cluster; the work is done by the two scripts beside this file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from experiments.errors import UserError

DEFAULT_FOLDER = Path.home() / ".cache" / "minislurm"
_HERE = Path(__file__).parent
_START_SECONDS = 900.0
_STOP_SECONDS = 180.0


def start(folder: Path, settings: Mapping[str, str] | None = None) -> None:
    """Start the cluster, or find that it runs already.

    settings: the MINISLURM_* variables that the script describes. Raises UserError with the script's words
    when it can't be started, as without root where packages are missing.
    """
    _run("slurm-up.sh", folder, settings or {}, _START_SECONDS)


def stop(folder: Path, purge: bool = False) -> None:
    """Stop the cluster's jobs and daemons; purge: delete its folder, too."""
    _run("slurm-down.sh", folder, {"MINISLURM_PURGE": "1"} if purge else {}, _STOP_SECONDS)


def environment(folder: Path) -> dict[str, str]:
    """The variables by which Slurm's commands find the cluster. Raises UserError when there is none."""
    path = folder / "etc" / "slurm.conf"
    if not path.is_file():
        raise UserError("There is no cluster here.", str(path), "start one: fastrl cluster up")
    return {"SLURM_CONF": str(path.resolve())}


def _run(script: str, folder: Path, settings: Mapping[str, str], seconds: float) -> None:
    command = ["bash", str(_HERE / script), str(folder)]
    variables = {**os.environ, **settings}
    try:
        done = subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{script} has not ended after {seconds:.0f} s.", str(folder), f"look at {folder}/log", 1
        ) from None
    if done.returncode != 0:
        raise UserError(
            f"{script} ended with exit code {done.returncode}; its messages are above.",
            str(folder),
            "on Debian or Ubuntu run it as root, or install munge slurmctld slurmd slurm-client slurmdbd "
            "mariadb-server yourself; elsewhere use a container with them",
            exit_code=1,
        )
