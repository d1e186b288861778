"""The words that commands share: `study=NAME`, `cell=...`, and Hydra overrides."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from experiments.errors import UserError

_CONF = Path(__file__).parents[1] / "conf"
_COMMAND_KEYS = ("study", "cell")


@dataclass(frozen=True)
class Words:
    """A command's words, sorted: `study=` and `cell=` (None when absent), Hydra overrides, and bare words."""

    study: str | None
    cell: str | None
    overrides: tuple[str, ...]
    bare: tuple[str, ...]


def add_words(parser: ArgumentParser, text: str) -> None:
    """Let a command take words; `text` says which in its help."""
    parser.add_argument("words", nargs="*", metavar="key=value", help=text)


def add_config_folders(parser: ArgumentParser) -> None:
    """Let a command take further config trees."""
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="a folder like experiments/conf with own methods, studies ... (may be repeated)",
    )


def sorted_words(words: Sequence[str], bare: bool = False) -> Words:
    """Sort a command's words. Raises UserError for one without `=`, unless the command takes `bare` words."""
    own: dict[str, str] = {}
    overrides, others = [], []
    for word in words:
        key, equals, value = word.partition("=")
        if key in _COMMAND_KEYS and equals:
            own[key] = value
        elif equals or word.startswith("~"):
            overrides.append(word)
        else:
            others.append(word)
    if others and not bare:
        raise UserError(
            f'"{others[0]}" is not of the form key=value.',
            "command line",
            "for example study=laptop seed=0,1",
        )
    return Words(own.get("study"), own.get("cell"), tuple(overrides), tuple(others))


def named_study(words: Words) -> str:
    """The study that the words name. Raises UserError when they name none."""
    if not words.study:
        names = ", ".join(path.stem for path in sorted((_CONF / "study").glob("*.yaml")))
        raise UserError("No study is named.", "command line", f"add study=NAME; studies: {names}")
    return words.study


def results_root(overrides: Sequence[str]) -> Path:
    """The results folder: the last `paths.root=` among the overrides, else the one in `conf/config.yaml`."""
    roots = [word.partition("=")[2] for word in overrides if word.startswith("paths.root=")]
    if roots:
        return Path(roots[-1].strip("'\"")).expanduser()
    config = yaml.safe_load((_CONF / "config.yaml").read_text(encoding="utf-8"))
    return Path(config["paths"]["root"])


def refuse_overrides(words: Words, accepted: Sequence[str], reason: str) -> None:
    """Raises UserError for an override whose key (or group) is not accepted by the command."""
    for word in words.overrides:
        if word.partition("=")[0].partition(".")[0] not in accepted:
            raise UserError(f'"{word}" changes nothing here: {reason}.', "command line", "leave it out")
