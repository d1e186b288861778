"""Ray over the nodes of a job: its head on the job's own node, a worker on each other, each a Slurm step.

Its processes end with the job, however that ends: see `slurm.ray_node`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import UserError
from slurm.client import call
from slurm.log_end import log_end
from slurm.ray_node import ray_folder

_POLL_SECONDS = 0.5
_PORTS_TRIED = 3
_STOP_SECONDS = 20.0
_TAIL_LINES = 20
_PROBE_SECONDS = 30.0
"""Longer than it was given, after which no answer is expected of the probe."""


class RayError(UserError):
    """Ray did not come up on every node."""


@dataclass(frozen=True)
class LostNode:
    """A node on which Ray has ended. what: a sentence that names it and its log. log_tail: the log's end."""

    what: str
    log_tail: str


class RayNodes:
    """Ray on the nodes of this job, one step each; `start`, then `stop`, whatever came between.

    python: the interpreter that has Ray. logs: a path for the log of each node, given its name.
    join_seconds: within which every node must have joined. environment: of Ray, with `ray_access` of the job.
    """

    def __init__(
        self,
        python: str,
        logs: Callable[[str], Path],
        join_seconds: float,
        environment: Mapping[str, str],
    ) -> None:
        self._python, self._logs, self._seconds = python, logs, join_seconds
        self._environment = dict(environment)
        self._steps: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, stop_requested: Callable[[], bool]) -> str | None:
        """Bring Ray up; its address, or None after a request to stop.

        Raises RayError naming the nodes that are missing and their logs, SlurmError.
        """
        end = time.monotonic() + self._seconds
        head = os.environ["SLURMD_NODENAME"]
        addresses = _addresses(os.environ["SLURM_JOB_NODELIST"])
        workers = [name for name in addresses if name != head]
        host = _own_address(addresses[workers[0]])
        for attempt in range(_PORTS_TRIED):
            port = _free_port(host)
            options = ("--head", f"--port={port}", f"--node-ip-address={host}", "--include-dashboard=false")
            self._start_step(head, *options, f"--temp-dir={ray_folder(os.environ)}")
            while not _accepts(host, port) and self._steps[head].poll() is None and time.monotonic() < end:
                if stop_requested():
                    return None
                time.sleep(_POLL_SECONDS)
            # Another process may have taken the port before Ray did.
            if self._steps[head].poll() is None or attempt == _PORTS_TRIED - 1:
                break
        for name in workers:
            self._start_step(name, f"--address={host}:{port}")
        return self._await(f"{host}:{port}", [head, *workers], end, stop_requested)

    def lost(self) -> LostNode | None:
        """A node on which Ray has ended, None while all are well."""
        for name, step in self._steps.items():
            if (code := step.poll()) is not None:
                how = f"exit code {code}" if code >= 0 else f"signal {-code}"
                what = f"Ray on {name} has ended ({how} of its step); its log is {self._logs(name)}"
                return LostNode(what, "\n".join(log_end(self._logs(name)).splitlines()[-_TAIL_LINES:]))
        return None

    def lost_within(self, seconds: float) -> LostNode | None:
        """As `lost`, for one that a stage has noticed before its step has ended."""
        end = time.monotonic() + seconds
        while (lost := self.lost()) is None and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        return lost

    def stop(self) -> None:
        """End Ray on every node; takes at most about 20 s, and what is left then ends with the job."""
        for step in self._steps.values():
            assert step.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                step.stdin.close()
        end = time.monotonic() + _STOP_SECONDS
        for name, step in self._steps.items():
            try:
                step.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                print(f"Ray on {name} has not ended in {_STOP_SECONDS:.0f} s", file=sys.stderr, flush=True)
                step.kill()
        shutil.rmtree(ray_folder(os.environ), ignore_errors=True)

    def _start_step(self, name: str, *options: str) -> None:
        cpus = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ["SLURM_CPUS_ON_NODE"]
        # Not one port that another job's Ray on the node might have, too.
        ports = ("--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0")
        step = ["srun", "--nodes=1", "--ntasks=1", f"--nodelist={name}", "--overlap"]
        step += [
            f"--cpus-per-task={cpus}",
            f"--output={self._logs(name)}",
            "--open-mode=append",
            f"--job-name=ray-{name}",
        ]
        command = [sys.executable, "-m", "slurm.ray_node", self._python, socket.gethostname()]
        self._steps[name] = subprocess.Popen(
            [*step, *command, f"--node-name={name}", *options, *ports],
            stdin=subprocess.PIPE,
            env=self._environment,
        )

    def _await(
        self, address: str, names: list[str], end: float, stop_requested: Callable[[], bool]
    ) -> str | None:
        """The address, once every node has joined; None after a request to stop."""
        left = max(1.0, end - time.monotonic())
        command = [self._python, "-m", "slurm.ray_joined", address, str(left), *names]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._environment) as probe:
            try:
                while probe.poll() is None and time.monotonic() < end + _PROBE_SECONDS:
                    if stop_requested():
                        return None
                    if (lost := self.lost()) is not None:
                        raise RayError(f"Ray has not come up: {lost.what}", lost.log_tail, "", 1)
                    time.sleep(_POLL_SECONDS)
            finally:
                probe.kill()
            shown = probe.stdout.read() if probe.stdout else ""
        if probe.returncode == 0:
            return address
        joined = json.loads(shown.splitlines()[-1]) if probe.returncode == 1 and shown else []
        missing = [name for name in names if name not in joined]
        raise RayError(
            f"Ray has not come up in {self._seconds:g} s (cluster.slurm.ray_join_seconds): "
            f"{', '.join(missing)} of {len(names)} nodes missing.",
            ", ".join(str(self._logs(name)) for name in missing),
            f"look into these logs; the nodes must reach {address}",
            1,
        )


def ray_access(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables by which the parts of a job's Ray know each other; none where the site has settled it.

    Ray asks for a token as soon as one lies in the user's home folder, where any Ray of one node leaves it,
    and then refuses nodes that were not told the same. With its own token a job's Ray takes no other's work.
    """
    if environment.get("RAY_AUTH_MODE", "token") != "token" or "RAY_AUTH_TOKEN_PATH" in environment:
        return {}
    token = environment.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}


def _addresses(nodes: str) -> Mapping[str, str]:
    """The address of each node of a list, in its order."""
    names = call(["scontrol", "show", "hostnames", nodes]).split()
    shown = call(["sinfo", "-h", "-N", "-n", nodes, "-o", "%N|%o"]).splitlines()
    known = dict(line.strip().split("|", 1) for line in shown)
    return {name: known.get(name, name) for name in names}


def _own_address(other: str) -> str:
    """The address by which another node finds this one: of the interface that leads there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((other, 9))
        return str(probe.getsockname()[0])


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _accepts(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0
