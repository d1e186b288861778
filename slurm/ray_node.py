"""Ray on one node of a job: `python -m slurm.ray_node PYTHON JOB_HOST OPTION...`, a step of its own.

It starts Ray in PYTHON and stays beside it until its standard input ends. The job on JOB_HOST holds that
open: when it closes it, or dies, Ray ends on every node. What Slurm asks a step to do is left to the job,
whose stage needs Ray for as long as it saves.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from slurm.log_end import log_end
from slurm.parent_death import end_with_parent

_START_RAY = "from ray.scripts.scripts import main; main()"
_PARTS = frozenset(("raylet", "gcs_server"))
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.5
_LAST_LINES = 4
_STOP_SECONDS = 8.0
_KILL_SECONDS = 4.0
_STORE_SHARE = 0.3
"""Of the job's memory, for Ray's object store; Ray's own default takes it of the whole machine."""


def main(arguments: list[str]) -> int:
    python, job_host, *options = arguments
    # Ray's processes that lose their parents become this one's children, and end with it.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)
    restart = os.environ.get("SLURM_RESTART_COUNT", "0")
    print(f"Ray of job {os.environ['SLURM_JOB_ID']}, restart {restart}: {' '.join(options)}", flush=True)
    command = [python, "-c", _START_RAY, "start", "--block", *options, *resources(os.environ)]
    # Ray ends its whole process group when it is killed: it gets one of its own.
    ray = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        start_new_session=True,
        preexec_fn=end_with_parent,
    )
    try:
        why = _watch(ray)
    finally:
        _end(ray)
    if why is not None:
        print(f"{_last_words()}Ray on {os.environ['SLURMD_NODENAME']} {why}", flush=True)
    # The job may have been killed. A worker on its machine, as of virtual nodes, leaves it to the head.
    if socket.gethostname() != job_host or "--head" in options:
        shutil.rmtree(ray_folder(os.environ), ignore_errors=True)
    return 0 if why is None else 1


def ray_folder(environment: Mapping[str, str]) -> Path:
    """Ray's own folder of a job: one path for all nodes, and short, for it holds sockets."""
    return Path("/tmp") / f"ray-job-{environment['SLURM_JOB_ID']}"


def resources(environment: Mapping[str, str]) -> list[str]:
    """What the step may use of its node, as options of `ray start`."""
    cpus = environment.get("SLURM_CPUS_PER_TASK") or environment["SLURM_CPUS_ON_NODE"]
    options = [f"--num-cpus={cpus}", f"--num-gpus={environment.get('SLURM_GPUS_ON_NODE') or 0}"]
    megabytes = int(environment.get("SLURM_MEM_PER_NODE") or 0)
    if megabytes:
        options.append(f"--object-store-memory={int(_STORE_SHARE * megabytes) << 20}")
    return options


def _watch(ray: subprocess.Popen[bytes]) -> str | None:
    """Wait until the job lets go of this step (None), or Ray has ended (how)."""
    seen: set[str] = set()
    while True:
        if select.select([0], [], [], _POLL_SECONDS)[0] and not os.read(0, 4096):
            return None
        if (code := ray.poll()) is not None:
            return f"ended with exit code {code}"
        # `ray start` takes no notice of a part that was asked to end.
        parts = set(_children(ray.pid).values()) & _PARTS
        if gone := seen - parts:
            return f"lost its {', '.join(sorted(gone))}"
        seen |= parts


def _last_words() -> str:
    """What Ray's parts complained of in logs of their own, which go with the job."""
    logs = (ray_folder(os.environ) / "session_latest" / "logs").glob("*.err")
    ends = [
        f"{path.name}: {line}\n"
        for path in sorted(logs)
        if path.name.startswith(tuple(_PARTS))
        for line in log_end(path).splitlines()[-_LAST_LINES:]
    ]
    return "".join(ends)


def _end(ray: subprocess.Popen[bytes]) -> None:
    """End Ray and whatever it started, within a bounded time."""
    ray.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        ray.wait(_STOP_SECONDS)
    end = time.monotonic() + _KILL_SECONDS
    while (left := _children(os.getpid())) and time.monotonic() < end:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.05)


def _children(parent: int) -> dict[int, str]:
    """The names of a process's children, by their ids."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            head, _, rest = path.read_text(encoding="utf-8", errors="replace").rpartition(")")
            state, of, *_ = rest.split()
            if int(of) == parent and (state != "Z" or parent == os.getpid()):
                found[int(path.parent.name)] = head.partition("(")[2]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
