"""Where the files of a training set are: in a local folder in hub layout, or fetched from the hub."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError
from eval.preparation.settings import HubFiles

_CHUNK = 2**20
_LISTED = 32


@dataclass(frozen=True)
class SourceFiles:
    """Files of one set, in order of their names. revision: the commit they were fetched at, "" when local."""

    repository: str
    revision: str
    folder: Path
    paths: tuple[Path, ...]

    def facts(self) -> dict[str, Any]:
        """For the data card: the files' number, size and sha256 (hex), each file's own when they are few."""
        digests = {path.relative_to(self.folder).as_posix(): file_digest(path) for path in self.paths}
        whole = hashlib.sha256("".join(f"{name}\0{sha}\n" for name, sha in digests.items()).encode())
        return {
            "repository": self.repository,
            "revision": self.revision or "unknown (local folder)",
            "files": len(self.paths),
            "bytes": sum(path.stat().st_size for path in self.paths),
            "sha256": whole.hexdigest(),
            "sha256_by_file": digests if len(digests) <= _LISTED else {},
        }


def locate(name: str, wanted: Sequence[HubFiles], folder: Path | None) -> list[SourceFiles]:
    """The files of each of `wanted`, in `folder` or, without one, from the hub.

    A folder holds the files of a set at their paths in it, or in a folder of the set's name (`geometry3k` of
    `hiyouga/geometry3k`). Raises DataError saying what to fetch and where to put it.
    """
    return [_from_hub(name, files) if folder is None else _in_folder(name, files, folder) for files in wanted]


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file, read in pieces. Raises DataError when it can't be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}; fetch it again") from error
    return digest.hexdigest()


def what_to_fetch(name: str, repository: str, revision: str, files: Sequence[str]) -> str:
    """How to get the files where there is a network, and what to do with them here."""
    short = repository.rpartition("/")[2]
    includes = " ".join(f"--include '{file}'" for file in files)
    return (
        f"where there is a network, run `hf download --repo-type dataset {repository} --revision {revision} "
        f"{includes} --local-dir FOLDER/{short}`, put FOLDER on this machine, and run "
        f"`fastrl data prepare {name} --from FOLDER`"
    )


def _in_folder(name: str, wanted: HubFiles, folder: Path) -> SourceFiles:
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; --from takes the folder that holds the set's files")
    folders = [folder, folder / wanted.repository.rpartition("/")[2]]
    for pattern in wanted.files:
        for place in folders:
            paths = tuple(sorted(path for path in place.glob(pattern) if path.is_file()))
            if paths:
                return SourceFiles(wanted.repository, "", place, paths)
    raise DataError(
        f"{name}: none of {', '.join(wanted.files)} is in {' or '.join(map(str, folders))}; "
        + what_to_fetch(name, wanted.repository, wanted.revision, wanted.files[:1])
    )


def _from_hub(name: str, wanted: HubFiles) -> SourceFiles:
    from huggingface_hub import snapshot_download

    pattern = wanted.files[0]
    try:
        folder = Path(
            snapshot_download(
                wanted.repository, repo_type="dataset", revision=wanted.revision, allow_patterns=[pattern]
            )
        )
    except Exception as error:  # network, access and cache errors share no class
        reason = str(error).strip().splitlines()
        raise DataError(
            f"{name}: {pattern} of {wanted.repository} at {wanted.revision} is not in the local cache of the "
            "hub and cannot be fetched "
            f"({type(error).__name__}: {reason[0] if reason else 'no reason given'}); "
            + what_to_fetch(name, wanted.repository, wanted.revision, [pattern])
        ) from error
    paths = tuple(sorted(path for path in folder.glob(pattern) if path.is_file()))
    if not paths:
        raise DataError(
            f"{name}: {wanted.repository} at {wanted.revision} has no file {pattern}; set its `files` and "
            "`revision` in the data set's YAML to what the hub has"
        )
    return SourceFiles(wanted.repository, folder.name, folder, paths)
