"""Slurm's own commands, each with a time limit."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from experiments.errors import UserError

SECONDS = 60.0
"""Longest wait for one answer of the controller."""


class SlurmError(UserError):
    """A Slurm command is missing, failed, or did not answer in time."""


def call(command: Sequence[str], seconds: float = SECONDS) -> str:
    """What a command prints. Raises SlurmError with Slurm's own words."""
    shown = " ".join(command[:2])
    if shutil.which(command[0]) is None:
        raise SlurmError(
            f"There is no {command[0]} on this machine.",
            f"PATH of this process, {len(os.environ.get('PATH', '').split(':'))} folders",
            "log in to a node of the cluster, or rehearse on this machine: fastrl cluster up",
            exit_code=1,
        )
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise SlurmError(
            f"{command[0]} gave no answer in {seconds:.0f} s.",
            shown,
            "the controller is busy or away: look with `scontrol ping`, then run the same command again",
            exit_code=1,
        ) from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise SlurmError(
            f"{command[0]} failed: {reason[-1]}",
            shown,
            "check the cluster's settings against the site: fastrl doctor cluster=NAME",
            exit_code=1,
        )
    return done.stdout


def submit(script: Path, options: Sequence[str]) -> str:
    """Send a batch script; its job id. Raises SlurmError."""
    return call(["sbatch", "--parsable", *options, str(script)]).strip().partition(";")[0]


def controller_setting(name: str) -> str | None:
    """One value of `scontrol show config`, None when it is not there. Raises SlurmError."""
    for line in call(["scontrol", "show", "config"]).splitlines():
        key, _, value = line.partition("=")
        if key.strip() == name:
            return value.strip()
    return None
