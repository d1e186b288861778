"""The batch script of a job array, and sbatch's options; nothing that a user named is ever shell code.

Every name, path and value reaches the shell quoted, or sbatch as an argument of its own. The lines of a
cluster's `setup` are the exception: they are shell code by intent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.cluster_settings import JobShape, SlurmSettings

_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 60


def job_name(*words: str) -> str:
    """A job's name in the queue, of letters, digits, `.`, `_` and `-` alone."""
    return "-".join(_UNFIT.sub("_", word) for word in words)[:_LONGEST_NAME]


def batch_script(
    title: str,
    setup: Sequence[str],
    environment: Mapping[str, str],
    code: Path,
    command: Sequence[str],
) -> str:
    """The script: set-up lines, variables, the snapshot of the code first on the path, then the command."""
    lines = ["#!/bin/bash", f"# {job_name(title)}", "set -e", *setup]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    # The code of the snapshot, and not of a folder that happens to be the current one.
    lines.append(f'export PYTHONPATH={shlex.quote(str(code))}"${{PYTHONPATH:+:$PYTHONPATH}}"')
    # The shell becomes the command, so that Slurm's signals to the batch step reach it.
    lines.append(f"exec {shlex.join(command)}")
    return "\n".join(lines) + "\n"


def sbatch_options(
    *,
    name: str,
    folder: Path,
    comment: str,
    indices: Sequence[int],
    depends_on: str,
    nodes: int,
    shape: JobShape,
    settings: SlurmSettings,
) -> list[str]:
    """Options of one array. depends_on: sbatch's dependency, or "" for none. shape: on each of the nodes."""
    limit = f"%{settings.parallelism}" if settings.parallelism else ""
    options = [
        f"--job-name={name}",
        f"--comment={comment}",
        f"--array={index_ranges(indices)}{limit}",
        f"--chdir={folder}",
        "--output=%A_%a.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:USR2@{settings.signal_seconds}",
        f"--time={shape.minutes}",
        f"--nodes={nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={shape.cpus}",
    ]
    if shape.memory:
        options.append(f"--mem={shape.memory}")
    if shape.gpus:
        kind = f"{settings.gpu_type}:" if settings.gpu_type else ""
        prefix = "gres=gpu:" if settings.gpu_request == "gres" else "gpus-per-node="
        options.append(f"--{prefix}{kind}{shape.gpus}")
    for option in ("partition", "account", "qos", "constraint"):
        value = getattr(settings, option)
        if value is not None:
            options.append(f"--{option}={value}")
    if depends_on:
        # Without this a job whose dependency can never hold stays in the queue for ever.
        options += [f"--dependency={depends_on}", "--kill-on-invalid-dep=yes"]
    options += [f"--{option}={value}" for option, value in settings.extra.items()]
    return options


def index_ranges(indices: Sequence[int]) -> str:
    """`0-3,7` of [0, 1, 2, 3, 7]."""
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
