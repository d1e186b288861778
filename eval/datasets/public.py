"""Public benchmarks: official records from the hub or a local folder, as questions with their prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError, located, read_records
from eval.datasets.settings import PublicSettings, RecordFiles
from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkProtocol, BenchmarkQuestion
from fastrl.rollouts import Question

_CHUNK = 2**20


@dataclass(frozen=True)
class DataFiles:
    """What a split was read from.

    folder: the data folder. revision: the hub's commit, "" for a local folder. files: path in the folder ->
    sha256 (hex). images: the number of image files beside them; images_digest: over their contents, those
    that are missing counted as empty.
    """

    folder: Path
    revision: str
    files: Mapping[str, str]
    rows: int
    images: int
    images_digest: str

    @property
    def digest(self) -> str:
        """sha256 (hex) of all contents, wherever they lie."""
        text = json.dumps([dict(self.files), self.images_digest], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        """What a result keeps of them."""
        return {
            "revision": self.revision,
            "files": dict(self.files),
            "rows": self.rows,
            "images": self.images,
            "images_digest": self.images_digest,
        }


def questions(config: Mapping[str, Any], split: str) -> list[BenchmarkQuestion]:
    """The questions of a split, prompts by the official protocol, in the official order.

    Raises DataError naming the file that is missing, changed, malformed or of another number of rows.
    """
    settings, wanted = _split(config, split)
    folder, _, paths = _located(settings, wanted)
    records: list[dict[str, Any]] = []
    for path in paths:
        _check_digest(path, wanted)
        records += read_records(path, path.relative_to(folder).as_posix())
    if wanted.rows is not None and len(records) != wanted.rows:
        named = ", ".join(str(path) for path in paths)
        raise DataError(
            f"{named}: {len(records)} rows where {settings.name}, split {split}, has {wanted.rows}; fetch "
            f"the whole file again, or set splits.{split}.rows to null to take what there is"
        )
    protocol = load_protocol(settings.protocol)
    companion = _companion(protocol, folder)
    if companion is not None:
        records = protocol.with_companion(records, read_records(companion, companion.name))  # type: ignore[attr-defined]
    return protocol.questions(records)


def data_files(config: Mapping[str, Any], split: str, asked: Sequence[BenchmarkQuestion]) -> DataFiles:
    """The files behind the questions that `questions` returned for the same config and split."""
    settings, wanted = _split(config, split)
    folder, revision, paths = _located(settings, wanted)
    beside = [reference for question in asked for reference in question.images if "::" not in reference]
    digest = hashlib.sha256()
    for reference in beside:
        path = Path(located(folder, reference))
        digest.update(f"{reference}\0{_file_digest(path) if path.is_file() else ''}\n".encode())
    return DataFiles(
        folder=folder,
        revision=revision,
        files={path.relative_to(folder).as_posix(): _file_digest(path) for path in paths},
        rows=len(asked),
        images=len(set(beside)),
        images_digest=digest.hexdigest(),
    )


def check_images(folder: Path, asked: Sequence[Question]) -> None:
    """Raise DataError, naming the first, when images of the questions are not in the data folder."""
    pictured = [question for question in asked if isinstance(question, BenchmarkQuestion)]
    paths = {reference: question.id for question in pictured for reference in question.images}
    missing = [path for path in paths if "::" not in path and not Path(located(folder, path)).is_file()]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(paths)} images are not in {folder}, first {missing[0]} of question "
            f"{paths[missing[0]]!r}; put the data set's images there"
        )


def data_folder(config: Mapping[str, Any], split: str) -> Path:
    """The folder that references to images start from."""
    return _located(*_split(config, split))[0]


def _split(config: Mapping[str, Any], split: str) -> tuple[PublicSettings, RecordFiles]:
    settings = PublicSettings.from_mapping(config)
    if split not in settings.splits:
        raise DataError(f"{settings.name} has no split {split!r}; it has {', '.join(settings.splits)}")
    return settings, settings.splits[split]


def _located(settings: PublicSettings, wanted: RecordFiles) -> tuple[Path, str, list[Path]]:
    """(data folder, revision, record files). Raises DataError saying what to fetch when there are none."""
    if settings.root is None:
        folder, revision = _from_hub(settings.name, settings.hub, settings.revision, wanted.files)
        folders = [folder]
    else:
        given, revision = Path(settings.root).expanduser(), ""
        folders = [given, given / settings.folder]
        if not given.is_dir():
            raise DataError(f"{settings.name}: there is no data folder at {given}; set data.root to one")
    for folder in folders:
        for pattern in wanted.files:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file())
            if paths:
                return folder, revision, paths
    source = (
        f"the hub set {settings.hub} at {settings.revision}" if settings.hub else "its authors' repository"
    )
    raise DataError(
        f"{settings.name}: none of {', '.join(wanted.files)} is in {' or '.join(map(str, folders))}; "
        f"put the files of {source} there"
    )


@lru_cache(maxsize=32)
def _from_hub(name: str, hub: str | None, revision: str, patterns: tuple[str, ...]) -> tuple[Path, str]:
    """(snapshot folder, commit) of a set on the hub, downloaded once into the hub's own cache."""
    if hub is None:
        raise DataError(f"{name} is on no hub: fetch its files and set data.root to their folder")
    from huggingface_hub import snapshot_download

    try:
        folder = Path(
            snapshot_download(hub, repo_type="dataset", revision=revision, allow_patterns=[*patterns])
        )
    except Exception as error:  # network, access and cache errors share no class
        raise DataError(
            f"{name}: the hub set {hub} at {revision} is not in the local cache and cannot be fetched "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}); "
            f"fetch {', '.join(patterns[:1])} elsewhere and set data.root to its folder"
        ) from error
    return folder, folder.name


def _companion(protocol: BenchmarkProtocol, folder: Path) -> Path | None:
    """The further file that a protocol reads beside the records, if it names one and the file is there."""
    name = getattr(protocol, "companion", None)
    return folder / name if name and (folder / name).is_file() else None


def _check_digest(path: Path, wanted: RecordFiles) -> None:
    expected = (wanted.sha256 or {}).get(path.name)
    if expected is not None and _file_digest(path) != expected:
        raise DataError(
            f"{path} has changed: sha256 {_file_digest(path)} where {expected} is published; fetch it again, "
            "or set the split's sha256 to null to use it as it is"
        )


def _file_digest(path: Path) -> str:
    """sha256 (hex) of a file; remembered while its size and time of change stay."""
    try:
        state = path.stat()
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing; fetch it again") from error
    return _content_digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=16_384)
def _content_digest(path: Path, size: int, changed: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
