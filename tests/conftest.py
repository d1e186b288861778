"""What all tests share: one thread a process, no network, no display, and a browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

# Before any test module imports torch or matplotlib, and for the processes that tests start.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", HF_HUB_OFFLINE="1", MPLBACKEND="Agg")

settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Figures are compared with the kept images wherever pytest-mpl is there, without --mpl; EasyR1's
    environment has none."""
    if hasattr(config.option, "mpl"):
        config.option.mpl = True


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(autouse=True)
def _without_mlflow_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's own MLflow settings steer no test."""
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    yield


_BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--window-size=1600,1000",
)
_CONSOLE = re.compile(r":CONSOLE[:(]\d+\)?\] (.*)")


@dataclass(frozen=True)
class OpenedPage:
    """A page as headless Chromium has it once its scripts have run. console: what it wrote to the console."""

    html: str
    console: tuple[str, ...]


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., OpenedPage]:
    """A function that opens an address in headless Chromium: `browse(address, *flags, seconds=60)`."""
    browser = next((path for path in map(shutil.which, _BROWSERS) if path), None)
    if browser is None:
        pytest.skip(f"needs one of {', '.join(_BROWSERS)}")

    def opened(address: str, *flags: str, seconds: int = 60) -> OpenedPage:
        """seconds: of virtual time that the page's scripts get."""
        command = [browser, *_BROWSER_FLAGS, *flags, f"--user-data-dir={tmp_path / 'browser'}"]
        command += [f"--virtual-time-budget={1000 * seconds}", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
        return OpenedPage(done.stdout, tuple(_CONSOLE.findall(done.stderr)))

    return opened


@pytest.fixture
def page_text(browse: Callable[..., OpenedPage]) -> Callable[[str], str]:
    """A function that opens an address in headless Chromium and returns the page, scripts run, as HTML."""
    return lambda address: browse(address).html
