"""Where a result comes from: the commit, package versions, the hardware and digests of the data."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.atomic_files import write_json
from experiments.run_directory import RunDirectory

SNAPSHOT_RECORD = "snapshot.json"
"""Beside the packages in a copy of the code that was made for a cluster's jobs: its commit and dirty flag."""

_PACKAGES = (
    "fastrl-suite",
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "lm-eval",
    "math-verify",
    "hydra-core",
    "submitit",
    "accelerate",
    "vllm",
    "ray",
    "verl",
)
_ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "SLURM_JOB_ID",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_RESTART_COUNT",
)
_CREDENTIALS_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_SECRET_ARGUMENT = re.compile(r"(?i)(\S*(?:token|password|passwd|secret|api_?key)\S*?=)\S+")


def code_commit() -> str | None:
    """The git commit of this code or of the checkout that it was copied from for a job; None for neither."""
    if (snapshot := _snapshot()) is not None:
        return snapshot.commit
    here = Path(__file__).resolve()
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return None
    return _git(here.parent, "rev-parse", "HEAD")


def code_is_dirty() -> bool | None:
    """Whether the code has changes that the commit lacks; None without a commit."""
    if (snapshot := _snapshot()) is not None:
        return snapshot.dirty
    if code_commit() is None:
        return None
    return bool(_git(Path(__file__).resolve().parent, "status", "--porcelain", "--untracked-files=no"))


def package_versions() -> dict[str, str]:
    """Versions of the packages that can change a result, of those that are installed; nothing is imported."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def hardware() -> dict[str, Any]:
    """Machine, processor, usable cores, memory in bytes and GPU names."""
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": _gpu_names(),
    }


def attempt_environment(argv: Sequence[str]) -> dict[str, Any]:
    """What `env.json` of an attempt holds.

    Environment variables come from a short list of those that steer threads, devices and the scheduler;
    secrets in the arguments are blanked.
    """
    return {
        "python": sys.executable,
        "packages": package_versions(),
        "argv": [without_secrets(argument) for argument in argv],
        "cwd": str(Path.cwd()),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": time.time(),
        "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    }


def without_secrets(argument: str) -> str:
    """A command-line argument with credentials in addresses and values of secret-looking keys blanked."""
    return _SECRET_ARGUMENT.sub(r"\1***", _CREDENTIALS_IN_URL.sub("***@", argument))


def write_provenance(
    run: RunDirectory, *, attempt: int, policy: str, steps: int, data: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write `provenance.json` at the start of a training attempt; earlier attempts stay listed.

    policy: the starting policy, by the name of its folder or on the hub. steps: of the whole training. data:
    what is known of each split.
    """
    code = {"commit": code_commit(), "dirty": code_is_dirty()}
    earlier = (run.provenance() or {}).get("attempts", [])
    attempts = [*earlier, {"attempt": attempt, "time": time.time(), "host": socket.gethostname(), **code}]
    record = {
        **code,
        "packages": package_versions(),
        "hardware": hardware(),
        "policy": policy,
        "steps": steps,
        "data": data,
        "attempts": attempts,
    }
    write_json(run.provenance_path, record)


@dataclass(frozen=True)
class _Snapshot:
    commit: str | None
    dirty: bool | None


def _snapshot() -> _Snapshot | None:
    try:
        text = (Path(__file__).resolve().parents[1] / SNAPSHOT_RECORD).read_text(encoding="utf-8")
        return _Snapshot(**json.loads(text))
    except (OSError, ValueError, TypeError):
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _gpu_names() -> list[str]:
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return listed.stdout.split("\n")[:-1] if listed.returncode == 0 else []
