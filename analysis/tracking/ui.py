"""MLflow's own pages on the SQLite store of a results folder."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from analysis.tracking.store import default_uri, sqlite_file, tracking_folder
from experiments.errors import UserError

_SERVER_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # evaluation jobs of language-model apps
}
_START_SECONDS = 300.0
_STOP_SECONDS = 10.0


def serve(root: Path, host: str, port: int) -> int:
    """Show the tracked runs of a results folder at http://host:port until interrupted or terminated.

    Returns the exit code. Call it in the main thread: it handles SIGTERM, so that no server is left behind.
    Raises UserError when nothing has been tracked, the port is taken or MLflow does not start.
    """
    uri = default_uri(root)
    file = sqlite_file(uri)
    if file is None or not file.exists():
        raise UserError(
            "No runs have been tracked here.", uri, "track a study first: fastrl track study=NAME"
        )
    _check_port(host, port)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    log = tracking_folder(root) / "ui.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            _command(uri, tracking_folder(root) / "artifacts", host, port),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **_SERVER_ENVIRONMENT},
        )
    address = f"http://{host}:{port}"
    try:
        _wait_until_up(server, address, log)
        print(f"MLflow shows the runs of {root} at {address}/#/experiments (Ctrl-C ends it)", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _stop(server)


def _command(uri: str, artifacts: Path, host: str, port: int) -> list[str]:
    """One worker: several would open the SQLite file at once. Artefacts sent to the server stay beside it."""
    options = {
        "--backend-store-uri": uri,
        "--artifacts-destination": artifacts.resolve().as_uri(),
        "--host": host,
        "--port": str(port),
        "--workers": "1",
    }
    return [sys.executable, "-m", "mlflow", "server", *(word for pair in options.items() for word in pair)]


def _check_port(host: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise UserError(
            f"MLflow's pages can't be served at {host}:{port}: {error.strerror or error}.",
            "--host and --port",
            f"choose another port: fastrl track ui --port {port + 1}",
        ) from None


def _wait_until_up(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise UserError(
                f"MLflow's server ended with code {server.returncode}: {' '.join(tail)}",
                str(log),
                "read the log named above",
                exit_code=1,
            )
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=5):
            return
        time.sleep(0.2)
    raise UserError(
        f"MLflow's server has not answered for {_START_SECONDS:.0f} s.",
        str(log),
        "read the log named above",
        1,
    )


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and its workers, which share a process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(_STOP_SECONDS)
            return
