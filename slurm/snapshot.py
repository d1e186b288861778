"""A copy of the code for submitted jobs: later edits of the checkout don't reach jobs in the queue."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from experiments.atomic_files import draft_path, write_error, write_file, write_json
from experiments.provenance import SNAPSHOT_RECORD
from slurm.ledger import slurm_folder

PACKAGES = ("analysis", "eval", "experiments", "fastrl", "slurm")
_PROJECT = Path(__file__).resolve().parents[1]


def snapshot_code(root: Path, project: Path = _PROJECT) -> Path:
    """Copy the packages to `<root>/slurm/code/<digest>`, unless they are there, and return the folder.

    The digest is of the files themselves and of the commit. `snapshot.json` beside them says of which commit
    they are and whether they differ from it, `uncommitted.patch` how. Raises WriteError.
    """
    if (project / SNAPSHOT_RECORD).is_file():
        # The code that submits is a snapshot itself.
        return project
    # Read once: a file that is edited meanwhile must not be copied under the digest of what it was.
    files = {file.relative_to(project): file.read_bytes() for file in sorted(_files(project))}
    commit = _commit(project)
    digest = hashlib.sha256(f"{commit}\0".encode())
    for name, content in files.items():
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(content).digest())
    folder = slurm_folder(root) / "code" / digest.hexdigest()[:16]
    if folder.is_dir():
        return folder
    draft = draft_path(folder)
    try:
        for name, content in files.items():
            target = draft / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        _describe(draft, project, commit)
        try:
            draft.rename(folder)
        except OSError:
            # Another submission made the same one first.
            if not folder.is_dir():
                raise
    except OSError as error:
        raise write_error(folder, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _files(project: Path) -> Iterator[Path]:
    for package in PACKAGES:
        for path in (project / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith(".draft"):
                yield path


def _describe(folder: Path, project: Path, commit: str | None) -> None:
    dirty = None
    if commit is not None:
        changed = _git(project, "status", "--porcelain", "--", *PACKAGES)
        dirty = bool(changed)
        if dirty:
            write_file(
                folder / "uncommitted.patch", _git(project, "diff", "HEAD", "--binary", "--", *PACKAGES)
            )
    write_json(folder / SNAPSHOT_RECORD, {"commit": commit, "dirty": dirty})


def _commit(project: Path) -> str | None:
    """The commit of a checkout; None for code without one."""
    if not _git(project, "ls-files", "--", "experiments/__init__.py"):
        return None
    return _git(project, "rev-parse", "HEAD").decode().strip()


def _git(project: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(project), *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).stdout
