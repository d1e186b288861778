"""Prepare a training set: parquet files that EasyR1 reads, with stable question ids, and a data card.

fastrl data prepare geometry3k                        from the Hugging Face hub
fastrl data prepare geoqa8k_r1v --from FOLDER         from a folder in hub layout, no network needed
fastrl data prepare math dataset.split=official       7,500 + 5,000 instead of 11,250 + 1,250
fastrl data prepare os_atlas --from FOLDER --to FOLDER
fastrl data prepare laptop_figures                    drawn here
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.commands.arguments import (
    Words,
    add_config_folders,
    add_words,
    refuse_overrides,
    sorted_words,
)
from experiments.errors import UserError, did_you_mean, listed


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "prepare NAME, then overrides such as dataset.split=official")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FOLDER",
        help="the set's files in hub layout (default: fetched from the hub)",
    )
    parser.add_argument(
        "--to", dest="target", type=Path, metavar="FOLDER", help="default: data/NAME in the results folder"
    )
    add_config_folders(parser)


def execute(arguments: Namespace) -> int:
    from eval.datasets import parquet_folder

    words = sorted_words(arguments.words, bare=True)
    refuse_overrides(words, ("dataset", "paths"), "preparing a set reads its dataset config alone")
    name = _named_set(words, arguments.config_dir)
    config = _dataset_config(name, words, arguments.config_dir)
    target = arguments.target or parquet_folder(config)
    assert target is not None  # every set that can be prepared has one
    target = target.expanduser()
    if "@" in str(target):
        raise UserError(
            f'"{target}" has an @ in it, which EasyR1 takes for the start of a split.',
            "--to",
            "choose another folder",
        )
    card = _prepare(config, arguments.source, target)
    for split, facts in card["splits"].items():
        print(f"{split:<13} {facts['questions']:>7,} questions  {target / facts['file']}")
    print(f"{'data card':<33}{target / 'data_card.md'}")
    return 0


def _dataset_config(name: str, words: Words, config_folders: list[Path]) -> Mapping[str, Any]:
    from experiments.compose import compose_cell

    # The rest of a cell does not matter here, but has to fit any data set.
    cell = ["model=hub", "model.path=any", f"dataset={name}", *words.overrides]
    config: Mapping[str, Any] = compose_cell(cell, config_folders)["dataset"]
    return config


def _prepare(config: Mapping[str, Any], source: Path | None, target: Path) -> Mapping[str, Any]:
    from eval.datasets.records import DataError
    from eval.datasets.settings import PREPARED_SETTINGS
    from eval.preparation.prepare import prepare
    from experiments.atomic_files import write_error
    from experiments.schema import build_settings

    settings, _ = build_settings(PREPARED_SETTINGS[config["source"]], config)  # composing has checked it
    assert settings is not None
    try:
        return prepare(settings, source.expanduser() if source else None, target)
    except DataError as error:
        what, _, way_out = str(error).partition("; ")
        raise UserError(f"{what}.", "", way_out, exit_code=1) from error
    except OSError as error:
        raise write_error(target, error) from error


def _named_set(words: Words, config_folders: list[Path]) -> str:
    """The set to prepare. Raises UserError for other words."""
    from eval.preparation import PREPARATIONS
    from experiments.config_tree import CONF, group_options

    names = [
        option
        for option in group_options([CONF, *config_folders], "dataset")
        if _source(option, [CONF, *config_folders]) in PREPARATIONS
    ]
    way_out = f"fastrl data prepare NAME; sets: {listed(names)}"
    if len(words.bare) != 2 or words.bare[0] != "prepare":
        raise UserError(f'"{" ".join(words.bare)}" is not understood.', "command line", way_out)
    name = words.bare[1]
    if name not in names:
        raise UserError(
            f'"{name}" is no set that can be prepared.', "command line", did_you_mean(name, names) + way_out
        )
    return name


def _source(option: str, folders: list[Path]) -> str | None:
    """The `source` that a data set's YAML names; the first folder that has the file counts, as for Hydra."""
    import yaml

    found = [path for folder in folders if (path := folder / "dataset" / f"{option}.yaml").is_file()]
    config = yaml.safe_load(found[0].read_text(encoding="utf-8"))
    return config.get("source") if isinstance(config, dict) else None
