"""The place that runs are tracked in: SQLite under the results folder, or an MLflow server.

One process at a time opens the SQLite file (`tracking_lock`): MLflow makes its tables on first use, and
processes that do so at once break each other (mlflow issue 4123).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from experiments.errors import UserError
from experiments.locks import acquire_patiently

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_LOCK_SECONDS = 120.0
_CONNECT_SECONDS = 10.0
_SQLITE = "sqlite:///"


def tracking_folder(root: Path) -> Path:
    """Where the SQLite file, its artefacts and the lock of a results root lie."""
    return root / "tracking"


def default_uri(root: Path) -> str:
    """The tracking URI of the SQLite file under a results root."""
    return f"{_SQLITE}{tracking_folder(root).resolve() / 'mlflow.db'}"


def sqlite_file(uri: str) -> Path | None:
    """The file of a SQLite tracking URI; None for a server's."""
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def artefact_location(uri: str, study: str) -> str | None:
    """Where a study's artefacts go: beside a SQLite file, None for where a server puts them."""
    file = sqlite_file(uri)
    return None if file is None else (file.parent / "artifacts" / study).resolve().as_uri()


@contextlib.contextmanager
def tracking_lock(root: Path) -> Iterator[None]:
    """Keep other processes from tracking under this root. Raises UserError when one does not finish."""
    with acquire_patiently(tracking_folder(root) / "mlflow.lock", _LOCK_SECONDS, "tracking"):
        yield


def open_client(uri: str) -> MlflowClient:
    """A client of the store, made on first use; call it under `tracking_lock`.

    The client goes where `uri` says: MLFLOW_TRACKING_URI, MLFLOW_RUN_ID and the like have no say. MLflow's
    usage reports are off. Raises UserError when the store can't be opened.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
    from sqlalchemy.exc import SQLAlchemyError

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    file = sqlite_file(uri)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    _check_reachable(uri)
    try:
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        client.search_experiments(max_results=1)
    except (MlflowException, SQLAlchemyError) as error:
        raise UserError(
            f"The tracking store can't be opened: {first_line(error)}.",
            shown(uri),
            _way_out(uri),
            exit_code=1,
        ) from error
    return client


def shown(uri: str) -> str:
    """A tracking URI for the terminal: without user and password."""
    return re.sub(r"(?<=://)[^/@]+@", "", uri)


def _check_reachable(uri: str) -> None:
    """Connect to a server once, since MLflow's client would try for minutes. Raises UserError."""
    address = urlsplit(uri)
    if address.scheme not in ("http", "https") or address.hostname is None:
        return
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname, port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise UserError(
            f"The MLflow server does not answer: {error.strerror or error}.", shown(uri), _way_out(uri), 1
        ) from error


def _way_out(uri: str) -> str:
    file = sqlite_file(uri)
    if file is None:
        return "check that the MLflow server runs and the address is right; or use tracking=sqlite"
    return f"if the file is damaged or of another MLflow, move it away and track again: {file}"


def first_line(error: Exception) -> str:
    """The first line of an error's message, without a full stop."""
    return str(error).strip().partition("\n")[0].rstrip(".")
