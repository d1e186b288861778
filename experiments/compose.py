"""From Hydra overrides to the resolved, checked config of a cell, as a plain dict."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from experiments.config_tree import CONF, ConfigTree, first_line, group_names, parse_overrides, quoted
from experiments.errors import UserError
from experiments.explain import failed_composition, failed_override, problem_report, source_of
from experiments.identity import IDENTITY_KEYS, TRANSIENT_KEYS, flattened
from experiments.schema import check_config
from experiments.validation import impossible_combinations, misnamed_files


def compose_cell(overrides: Sequence[str], extra_conf_dirs: Sequence[Path] = ()) -> dict[str, Any]:
    """Compose `experiments/conf/config.yaml` with Hydra overrides, resolve it and check it.

    extra_conf_dirs: further config trees; their groups add options to ours. Hydra composes each choice of
    groups once; the values of a cell are then set as Hydra does it, which takes a cell milliseconds.
    Raises UserError for anything that can't be composed, is mistyped or can't work together.
    """
    folders = (CONF, *(Path(folder).resolve() for folder in extra_conf_dirs))
    return copy.deepcopy(_cell(tuple(overrides), folders))


def resolve_cell(tree: ConfigTree) -> dict[str, Any]:
    """Resolve interpolations, drop the shorthands that have been used, check types and combinations.

    Returns the resolved config in plain containers, with its keys in a fixed order.
    """
    try:
        resolved: Any = OmegaConf.to_container(tree.config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = getattr(error, "full_key", "") or ""
        what = f"{key} can't be resolved: {first_line(error)}" if key else first_line(error)
        raise UserError(
            what, source_of(tree, key), "give it a value in the file, or by an override"
        ) from None
    # `fastrl` holds shorthands that method files interpolate; `hydra` is Hydra's own.
    config = {key: value for key, value in resolved.items() if key not in ("fastrl", "hydra")}
    checked, problems = check_config(config)
    if not problems:
        problems = [*misnamed_files(checked, tree.choices), *impossible_combinations(checked)]
    if problems:
        raise problem_report(tree, problems)
    return {key: checked[key] for key in (*IDENTITY_KEYS, *TRANSIENT_KEYS)}


@lru_cache(maxsize=1024)
def _cell(overrides: tuple[str, ...], folders: tuple[Path, ...]) -> dict[str, Any]:
    groups = group_names(folders)
    parsed = parse_overrides(overrides)
    swept = [str(item.input_line) for item in parsed if item.is_sweep_override()]
    if swept:
        raise UserError(
            f'"{swept[0]}" names several values.', "override", "a single cell takes one value per key"
        )
    values = [item for item in parsed if item.key_or_group not in groups]
    if any(item.type is not OverrideType.CHANGE for item in values):
        values = []  # keys come or go: Hydra does it all
    chosen = tuple(str(item.input_line) for item in parsed if item not in values)
    # The cells of an arm differ in their seed alone: all else is set once.
    shared = tuple(str(item.input_line) for item in values if item.key_or_group != "seed")
    tree = _set(chosen, shared, folders)
    seeds = [item for item in values if item.key_or_group == "seed"]
    if all(type(item.value()) is int and item.value() >= 0 for item in seeds):
        arm, names_seed = _arm(chosen, shared, folders)
        if not names_seed:
            return {**arm, "seed": seeds[-1].value()} if seeds else arm
    return resolve_cell(ConfigTree(_updated(tree.config, seeds, groups), tree.choices, overrides, folders))


@lru_cache(maxsize=256)
def _arm(
    chosen: tuple[str, ...], values: tuple[str, ...], folders: tuple[Path, ...]
) -> tuple[dict[str, Any], bool]:
    """The resolved, checked config of an arm, and whether an interpolation in it may name the seed."""
    tree = _set(chosen, values, folders)
    written: Any = OmegaConf.to_container(tree.config, resolve=False)
    texts = [text for text in flattened(written).values() if "${" in str(text)]
    return resolve_cell(tree), any("seed" in str(text) for text in texts)


@lru_cache(maxsize=256)
def _set(chosen: tuple[str, ...], values: tuple[str, ...], folders: tuple[Path, ...]) -> ConfigTree:
    """The config of a choice of groups, with values set."""
    composed = _composed(chosen, folders)
    config = _updated(composed.config, parse_overrides(values), group_names(folders))
    return ConfigTree(config, composed.choices, (*chosen, *values), folders)


def _updated(config: DictConfig, values: Sequence[Override], groups: Collection[str]) -> DictConfig:
    """A copy of a config with values set."""
    updated: DictConfig = pickle.loads(pickle.dumps(config))  # four times as fast as a deep copy
    for item in values:
        try:
            OmegaConf.update(updated, item.key_or_group, item.value(), merge=True)
        except OmegaConfBaseException as error:
            raise failed_override(updated, item, groups, error) from None
    return updated


@lru_cache(maxsize=256)
def _composed(overrides: tuple[str, ...], folders: tuple[Path, ...]) -> ConfigTree:
    search_path = ",".join(quoted(f"file://{folder}") for folder in folders[1:])
    extra = [f"hydra.searchpath=[{search_path}]"] if search_path else []
    try:
        with initialize_config_dir(str(folders[0]), version_base="1.3"):
            config = compose("config", overrides=[*overrides, *extra], return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise failed_composition(error, overrides, folders) from None
    choices = {str(group): choice for group, choice in config.hydra.runtime.choices.items()}
    with open_dict(config):
        del config["hydra"]
    return ConfigTree(config, choices, overrides, folders)
