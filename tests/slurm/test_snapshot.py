"""The copy of the code that jobs run: of a commit, with what was not committed, recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.atomic_files import draft_path
from slurm.snapshot import PACKAGES, snapshot_code


def git(project: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    command = ["git", *identity, "-C", str(project), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for package in PACKAGES:
        (project / package).mkdir(parents=True)
        (project / package / "__init__.py").write_text(f'"""{package}"""\n')
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    return project


def test_a_snapshot_is_of_the_commit_and_stays_when_the_checkout_changes(
    project: Path, tmp_path: Path
) -> None:
    folder = snapshot_code(tmp_path, project)
    record = json.loads((folder / "snapshot.json").read_text())
    assert record == {"commit": git(project, "rev-parse", "HEAD"), "dirty": False}
    assert not (folder / "uncommitted.patch").exists()
    assert snapshot_code(tmp_path, project) == folder
    before = (folder / "slurm" / "__init__.py").read_text()
    (project / "slurm" / "__init__.py").write_text("changed = True\n")
    (project / "slurm" / "new.py").write_text("new = True\n")
    changed = snapshot_code(tmp_path, project)
    assert changed != folder
    assert (folder / "slurm" / "__init__.py").read_text() == before
    assert (changed / "slurm" / "new.py").read_text() == "new = True\n"
    assert json.loads((changed / "snapshot.json").read_text())["dirty"] is True
    assert "+changed = True" in (changed / "uncommitted.patch").read_text()


def test_a_file_that_is_edited_meanwhile_is_copied_as_it_was_digested(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = project / "slurm" / "__init__.py"
    before = edited.read_text()

    def edit_first(path: Path) -> Path:
        edited.write_text("changed = True\n")
        return draft_path(path)

    monkeypatch.setattr("slurm.snapshot.draft_path", edit_first)
    folder = snapshot_code(tmp_path, project)
    assert (folder / "slurm" / "__init__.py").read_text() == before
    edited.write_text(before)
    assert snapshot_code(tmp_path, project) == folder


def test_code_without_a_checkout_is_copied_too(project: Path, tmp_path: Path) -> None:
    subprocess.run(["rm", "-rf", str(project / ".git")], check=True)
    folder = snapshot_code(tmp_path, project)
    assert json.loads((folder / "snapshot.json").read_text()) == {"commit": None, "dirty": None}


def test_code_in_a_snapshot_knows_its_commit(tmp_path: Path) -> None:
    folder = snapshot_code(tmp_path)
    recorded = json.loads((folder / "snapshot.json").read_text())
    code = "from experiments.provenance import *; print([code_commit(), code_is_dirty()])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env={}, check=True
    )
    assert done.stdout.strip() == str([recorded["commit"], recorded["dirty"]])
