"""A real Slurm for the tests of this folder: started once, stopped at the end, skipped where it can't run."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.minislurm.control import environment, start, stop

_DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "slurmdbd", "mariadbd")
_PORT = 20817
_PORTS_A_CLUSTER = 20
_CLUSTERS = 500
_JOBS_A_CLUSTER = 10_000
_EXTRA = (
    # Memory limits are not enforced without cgroups; this makes Slurm look every second and enforce them.
    "JobAcctGatherParams=OverMemoryKill",
    "JobAcctGatherFrequency=task=1",
)
_SETTINGS = {"MINISLURM_INSTALL": "0", "MINISLURM_NODES": "3"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Slurm's commands reach a cluster of three nodes: node1, node2, node3."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in _DAEMONS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: `fastrl cluster up`, as root, installs them")
    if os.getuid() != 0:
        pytest.skip("slurmd starts jobs as root only")
    folder = Path(tempfile.mkdtemp(prefix="ms-"))
    number = _free_number()
    # Folders of jobs in /tmp are named by their numbers.
    extra = (*_EXTRA, f"FirstJobId={1 + number * _JOBS_A_CLUSTER}")
    settings = {"MINISLURM_PORT": str(_first_port(number)), "MINISLURM_EXTRA": "\n".join(extra)}
    try:
        start(folder, _SETTINGS | settings)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(folder).items():
                patch.setenv(name, value)
            yield
    finally:
        stop(folder, purge=True)


def _free_number() -> int:
    """Of a cluster whose ports nobody has: several sessions may run on a machine, each with some workers."""
    for turn in range(_CLUSTERS):
        number = (os.getpid() + turn) % _CLUSTERS
        first = _first_port(number)
        if all(map(_is_free, range(first, first + _PORTS_A_CLUSTER))):
            return number
    raise RuntimeError(f"no {_PORTS_A_CLUSTER} free ports in a row from {_PORT} on")


def _first_port(number: int) -> int:
    return _PORT + number * _PORTS_A_CLUSTER


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
