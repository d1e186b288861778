"""Where a run's starting policy comes from: the hub or a folder as it is, or built here once and cached."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.atomic_files import write_error
from experiments.identity import canonical_json
from experiments.locks import Lock, LockHeld, LockLost, acquire

BUILD_VERSION = 1
"""Part of a built policy's cache key: raise it when a builder gives other weights for the same settings."""

_POLL_SECONDS = 0.5


def prepare_policy(
    model_config: Mapping[str, Any],
    dataset_config: Mapping[str, Any],
    models: Path,
    announce: Callable[[str], None],
) -> Path | str:
    """The policy to load: `path` of a hub model unchanged, or the folder of a built one, built if need be.

    A built policy is cached as `<models>/<name>-<10 hex>`, keyed by its settings, the data set's splits and
    BUILD_VERSION. It appears complete or not at all. Of several processes one builds and the others wait.
    Raises UserError when the folder can't be written, ValueError for a data set the builder does not know.
    """
    if model_config["kind"] == "hub":
        path: str = model_config["path"]
        return path
    folder = models / f"{model_config['name']}-{_build_digest(model_config, dataset_config)}"
    while not folder.is_dir():
        # A builder that was held up for so long that another one took over waits for that one.
        with contextlib.suppress(LockLost), _building(folder, announce) as lock:
            if not folder.is_dir():
                _build(model_config, dataset_config, folder, lock, announce)
    return folder


def _build_digest(model_config: Mapping[str, Any], dataset_config: Mapping[str, Any]) -> str:
    """10 hex digits over what a built policy depends on; the labels of tables are not among it."""
    key = {
        "version": BUILD_VERSION,
        "model": {name: value for name, value in model_config.items() if name != "label"},
        "dataset": {"source": dataset_config["source"], "splits": dataset_config.get("splits")},
    }
    return hashlib.sha256(canonical_json(key).encode()).hexdigest()[:10]


def _building(folder: Path, announce: Callable[[str], None]) -> Lock:
    """The lock on building this folder, waiting while another live process builds it."""
    path = folder.with_name(f"{folder.name}.lock")
    announced = False
    while True:
        try:
            return acquire(path)
        except LockHeld as held:
            if not announced:
                announce(f"waiting for {held.holder or 'another process'}, which is building {folder.name}")
                announced = True
            time.sleep(_POLL_SECONDS)


def _build(
    model_config: Mapping[str, Any],
    dataset_config: Mapping[str, Any],
    folder: Path,
    lock: Lock,
    announce: Callable[[str], None],
) -> None:
    def announce_and_touch(line: str) -> None:
        lock.touch()
        announce(line)

    builder = importlib.import_module(f"experiments.policies.{model_config['builder']}")
    # Named by the lock's token: one that has lost its lock must not touch the draft of the next.
    draft = folder.with_name(f"{folder.name}.{lock.holder.token}.building")
    try:
        for left in folder.parent.glob(f"{folder.name}.*building"):
            shutil.rmtree(left, ignore_errors=True)
        draft.mkdir(parents=True)
        builder.build(model_config, dataset_config, draft, announce_and_touch)
        lock.touch()
        draft.replace(folder)
    except OSError as error:
        # The next builder removes the draft under one that lost its lock: that one is to wait, not to fail.
        lock.touch()
        raise write_error(folder, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
