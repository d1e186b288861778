"""A real Slurm for the tests of this folder: started once, stopped at the end, skipped where it can't run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.minislurm.control import environment, start, stop

_DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "slurmdbd", "mariadbd")
_PORT = 20817
_PORTS_A_CLUSTER = 20
_CLUSTERS = 500
_SETTINGS = {
    "MINISLURM_INSTALL": "0",
    "MINISLURM_NODES": "3",
    # Memory limits are not enforced without cgroups; this makes Slurm look every second and enforce them.
    "MINISLURM_EXTRA": "JobAcctGatherParams=OverMemoryKill\nJobAcctGatherFrequency=task=1",
}


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
    # Several sessions may run on a machine, each with several workers.
    port = _PORT + os.getpid() % _CLUSTERS * _PORTS_A_CLUSTER
    try:
        start(folder, {**_SETTINGS, "MINISLURM_PORT": str(port)})
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(folder).items():
                patch.setenv(name, value)
            yield
    finally:
        stop(folder, purge=True)
