"""Files in folders, zip archives and split zip archives, found by name without unpacking anything."""

from __future__ import annotations

import bisect
import io
import zipfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Self

from eval.datasets.records import DataError

_AMBIGUOUS = ""


class JoinedFile(io.RawIOBase):
    """The parts of a split file, read as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self._files = [path.open("rb") for path in paths]
        self._ends = list(accumulate(path.stat().st_size for path in paths))
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1]}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Fill the buffer across parts, as zipfile expects; less is read at the end alone."""
        view, filled = memoryview(buffer), 0
        while filled < len(view) and self._at < self._ends[-1]:
            part = bisect.bisect_right(self._ends, self._at)
            self._files[part].seek(self._at - (self._ends[part - 1] if part else 0))
            n = self._files[part].readinto(view[filled:])
            filled += n
            self._at += n
        return filled

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


class StoredFiles:
    """Files below folders and in archives, by their path there or, where that is unique, by their name alone.

    Archives are opened once and their directories kept; contents are read when asked for.
    """

    def __init__(self, folder: Path, patterns: Sequence[str]) -> None:
        """patterns: paths below `folder` of folders, of zip archives, or of the parts of split ones.

        All that one pattern matches other than folders and `.zip` files is taken as one split archive, in
        order of names. Raises DataError naming a pattern without a match and an archive that can't be read.
        """
        self._folders: list[Path] = []
        self._archives: list[zipfile.ZipFile] = []
        self._joined: list[JoinedFile] = []
        for pattern in patterns:
            paths = sorted(folder.glob(pattern))
            if not paths:
                raise DataError(
                    f"{folder / pattern} is missing: the screenshots of its annotations are in it"
                )
            self._folders += [path for path in paths if path.is_dir()]
            for path in paths:
                if path.suffix == ".zip" and path.is_file():
                    self._archives.append(_opened(path, str(path)))
            parts = [path for path in paths if path.is_file() and path.suffix != ".zip"]
            if parts:
                self._joined.append(JoinedFile(parts))
                self._archives.append(_opened(self._joined[-1], str(folder / pattern)))
        self._members: dict[str, tuple[int, str]] = {}
        for number, archive in enumerate(self._archives):
            for member in archive.namelist():
                self._members.setdefault(member, (number, member))
        for number, archive in enumerate(self._archives):
            for member in archive.namelist():
                name = member.rpartition("/")[2]
                known = self._members.setdefault(name, (number, member))
                if known != (number, member):
                    self._members[name] = known if known[1] == name else (number, _AMBIGUOUS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for archive in self._archives:
            archive.close()
        for joined in self._joined:
            joined.close()

    def __contains__(self, name: str) -> bool:
        return self._path(name) is not None or self._member(name) is not None

    def read(self, name: str) -> bytes:
        """A file's content. Raises DataError naming it when it is not there or its archive is damaged."""
        try:
            path = self._path(name)
            if path is not None:
                return path.read_bytes()
            member = self._member(name)
            if member is None:
                raise DataError(f"the screenshot {name} is in none of the folders and archives")
            return self._archives[member[0]].read(member[1])
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise DataError(
                f"the screenshot {name} cannot be read: {error}; fetch its archive again"
            ) from error

    def _path(self, name: str) -> Path | None:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            return None
        return next((place / name for place in self._folders if (place / name).is_file()), None)

    def _member(self, name: str) -> tuple[int, str] | None:
        found = self._members.get(name) or self._members.get(name.rpartition("/")[2])
        return found if found and found[1] != _AMBIGUOUS else None


def _opened(file: Path | JoinedFile, name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{name} is no whole zip archive: {error}; fetch it, or all its parts, again"
        ) from error
