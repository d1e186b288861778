"""Tests against a real EasyR1, run in its own environment: `EASYR1_HOME=… python -m pytest -m easyr1`."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = _missing()
    for item in items:
        if "easyr1" in item.keywords and _HERE in item.path.parents and missing:
            item.add_marker(pytest.mark.skip(reason=missing))


def _missing() -> str:
    home = os.environ.get("EASYR1_HOME")
    if home and not (Path(home) / "verl").is_dir():
        return f"EASYR1_HOME={home} holds no verl"
    if not home and importlib.util.find_spec("verl") is None:
        return "no EasyR1: set EASYR1_HOME to a checkout of it"
    for module in ("ray", "tensordict", "omegaconf"):
        if importlib.util.find_spec(module) is None:
            return f"EasyR1's environment is needed: no module {module} here"
    return ""


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    from tiny_assets import build_assets

    return build_assets(tmp_path_factory.mktemp("assets"))


@pytest.fixture(scope="session")
def vision_assets(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    from tiny_vision_assets import build_vision_assets

    return build_vision_assets(tmp_path_factory.mktemp("vision_assets"))
