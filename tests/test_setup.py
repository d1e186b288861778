"""Set-up: the pins fit the declared ranges, a wheel holds every file, and a failed set-up says what to do."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from test_architecture import PACKAGES, imports

ROOT = Path(__file__).parents[1]


def project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def pins() -> dict[str, Version]:
    """The exact versions of constraints.txt, by canonical name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    named = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in named}


def declared() -> list[Requirement]:
    """What `pip install -e .[dev]` asks for."""
    return [
        Requirement(text) for text in project()["dependencies"] + project()["optional-dependencies"]["dev"]
    ]


def test_every_declared_dependency_is_pinned_within_its_range() -> None:
    for requirement in declared():
        assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), requirement


def test_whatever_a_pinned_package_needs_is_pinned() -> None:
    """Over all that is installed here: nothing is left for the resolver to choose."""
    open_requirements, missing, seen = [(each, "") for each in declared()], [], set()
    while open_requirements:
        requirement, extra = open_requirements.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name not in pins():
            missing.append(str(requirement))
        for wanted in ("", *requirement.extras):
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                texts = importlib.metadata.requires(name) or []
                open_requirements += [(Requirement(text), wanted) for text in texts]
    assert not missing


def test_pins_are_sorted_public_versions_without_paths() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in packages)
    assert packages == sorted(packages, key=lambda line: line.upper())


def test_every_import_comes_from_a_declared_package_or_one_that_it_requires() -> None:
    names = {canonicalize_name(Requirement(text).name) for text in project()["dependencies"]}
    extras = {
        canonicalize_name(Requirement(text).name)
        for extra in project()["optional-dependencies"].values()
        for text in extra
    }
    required = {
        canonicalize_name(Requirement(text).name)
        for name in names
        for text in importlib.metadata.requires(name) or []
    }
    distributions = importlib.metadata.packages_distributions()
    for found in imports():
        top = found.target.partition(".")[0]
        if top in sys.stdlib_module_names or top in PACKAGES:
            continue
        if top == "verl" or canonicalize_name(top) in extras:  # EasyR1 is the user's, and not on PyPI
            continue
        assert {canonicalize_name(name) for name in distributions[top]} & (names | required), found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the checkout, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(folder)], check=True)
    [path] = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_a_wheel_holds_every_file_of_the_packages_and_no_other(wheel: zipfile.ZipFile) -> None:
    in_checkout = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    in_wheel = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert in_wheel == in_checkout


def test_a_wheel_installs_the_command_and_its_licence(wheel: zipfile.ZipFile) -> None:
    [entry_points] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "fastrl = experiments.cli:main" in wheel.read(entry_points).decode()
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that set-up reads, in a folder without an environment."""
    for name in ("setup_env.sh", "Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(checkout: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "MAKE"))}
    return subprocess.run(
        ["make", *words],
        cwd=checkout,
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def command(folder: Path, name: str, text: str) -> Path:
    """A shell script that stands for a command."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_make_alone_lists_its_targets(checkout: Path) -> None:
    shown = make(checkout).stdout
    for target in ("demo", "test", "lint", "bench", "clean"):
        assert f"make {target} " in shown


def test_a_missing_python_is_named(checkout: Path) -> None:
    done = make(checkout, "test", "PYTHON=/nowhere/python3")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed; /nowhere/python3 is: no such command" in done.stderr
    assert "way out: install it, or name one: make PYTHON=" in done.stderr
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_named_with_its_version(checkout: Path) -> None:
    old = command(checkout / "bin", "python3", '[ "$1" = --version ] && echo Python 3.9.2 && exit 0; exit 1')
    done = make(checkout, "lint", f"PYTHON={old}")
    assert f"Python 3.11 or newer is needed; {old} is: Python 3.9.2" in done.stderr


def test_a_python_without_venv_says_how_to_get_it(checkout: Path) -> None:
    bare = command(
        checkout / "bin",
        "python3",
        f'[ "$2" = venv ] && echo "$0: No module named venv" && exit 1; exec {sys.executable} "$@"',
    )
    done = make(checkout, "test", f"PYTHON={bare}")
    assert "error: Making the virtual environment failed." in done.stderr
    assert "apt-get install python3-venv" in done.stderr


def test_a_full_disk_is_named_before_anything_is_written(checkout: Path) -> None:
    command(checkout / "bin", "df", 'printf "Filesystem 1024-blocks Used Available\\n/dev/sda 9 9 204800\\n"')
    done = make(checkout, "test", PATH=f"{checkout / 'bin'}:{os.environ['PATH']}")
    assert "has 200 MB free; the environment needs about 3000 MB" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.fixture
def offline() -> Iterator[dict[str, str]]:
    """pip with an index that nobody answers for."""
    yield {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "1",
    }


@pytest.mark.slow
def test_no_network_says_so_and_the_next_try_goes_on(checkout: Path, offline: dict[str, str]) -> None:
    for expected in (
        "2/4: virtual environment .venv\n",
        "2/4: virtual environment .venv: bring the existing",
    ):
        done = make(checkout, "test", **offline)
        assert done.returncode != 0
        assert expected in done.stdout
        assert "error: Installing pip and setuptools failed." in done.stderr
        assert "way out: check the network" in done.stderr
    assert not (checkout / ".venv" / ".set-up").exists()


def test_clean_keeps_results(checkout: Path) -> None:
    for folder in (".venv/bin", "results/runs", "fastrl/__pycache__", ".pytest_cache"):
        (checkout / folder).mkdir(parents=True)
    assert make(checkout, "clean").returncode == 0
    assert (checkout / "results" / "runs").exists()
    assert not any((checkout / name).exists() for name in (".venv", "fastrl/__pycache__", ".pytest_cache"))
