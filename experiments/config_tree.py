"""The config folders and Hydra's override grammar: what can be chosen, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig

from experiments.errors import UserError

CONF = Path(__file__).parent / "conf"


@dataclass(frozen=True)
class ConfigTree:
    """A composed config before interpolation, with what is needed to say where a value came from.

    choices: the option chosen of each group (`method/selector` -> `mdap`).
    """

    config: DictConfig
    choices: Mapping[str, Any]
    overrides: tuple[str, ...]
    folders: tuple[Path, ...]


def parse_overrides(overrides: Sequence[str], where: str = "override") -> list[Override]:
    """Read `key=value` strings with Hydra's grammar.

    Raises UserError, naming `where` they stand, for one that can't be read.
    """
    parsed = []
    for text in overrides:
        try:
            parsed.append(_parsed(text))
        except HydraException as error:
            reason = first_line(error)
            way_out = (
                "write key=value; put quotes around a value with spaces or special characters: key='a b'"
            )
            raise UserError(f'"{text}" is not an override: {reason}', where, way_out) from None
    return parsed


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Override:
    """The cells of a study share most of their overrides, and Hydra's parser takes milliseconds for each."""
    return OverridesParser.create().parse_override(text)


def quoted(value: str) -> str:
    """A string as a quoted value of Hydra's override grammar, whatever characters it holds."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def group_options(folders: Iterable[Path], group: str) -> list[str]:
    """The options of a config group: the YAML files in its folders, sorted."""
    return sorted({path.stem for folder in folders for path in (folder / group).glob("*.yaml")})


@lru_cache(maxsize=16)
def group_names(folders: tuple[Path, ...]) -> frozenset[str]:
    """Config groups: the folders that hold YAML files, but `study`, for a cell does not choose a study."""
    names = {
        path.parent.relative_to(folder).as_posix() for folder in folders for path in folder.rglob("*.yaml")
    }
    return frozenset(names - {".", "study"})


def first_line(error: BaseException) -> str:
    """The first line of an exception's message that says something; its class when none does."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
