"""What all tests share: one thread a process, no network, no display, and a browser where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Before any test module imports torch or matplotlib, and for the processes that tests start.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", HF_HUB_OFFLINE="1", MPLBACKEND="Agg")

settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("suite")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(autouse=True)
def _without_mlflow_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's own MLflow settings steer no test."""
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    yield


@pytest.fixture
def page_text(tmp_path: Path) -> Callable[[str], str]:
    """A function that opens an address in headless Chromium and returns the page, scripts run, as HTML."""
    browser = next((path for path in map(shutil.which, _BROWSERS) if path), None)
    if browser is None:
        pytest.skip(f"needs one of {', '.join(_BROWSERS)}")

    def opened(address: str) -> str:
        return subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                f"--user-data-dir={tmp_path / 'browser'}",
                "--window-size=1600,1000",
                "--virtual-time-budget=60000",
                "--dump-dom",
                address,
            ],
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        ).stdout

    return opened
