"""Errors of composition: the key, its value, the file or override it came from, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from experiments.config_tree import ConfigTree, first_line, group_names, group_options, parse_overrides
from experiments.errors import UserError, did_you_mean, listed
from experiments.schema import Problem

_PROBLEMS_SHOWN = 6
_INTERPOLATED_KEY = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")


def failed_composition(error: Exception, overrides: tuple[str, ...], folders: tuple[Path, ...]) -> UserError:
    """Why a composition failed: a group's option that does not exist, or else Hydra's own reason."""
    groups = group_names(folders)
    for item in parse_overrides(overrides):
        options = group_options(folders, item.key_or_group)
        chosen = item.value()
        for choice in chosen if isinstance(chosen, list) else [chosen]:
            if item.key_or_group in groups and isinstance(choice, str) and choice not in options:
                way_out = f"{did_you_mean(choice, options)}options: {listed(options)}"
                return UserError(f'There is no {item.key_or_group} "{choice}".', _named(item), way_out)
    where = ", ".join(_named(item) for item in parse_overrides(overrides)) or str(folders[0])
    return UserError(f"The config can't be composed: {first_line(error)}", where, "")


def failed_override(
    config: DictConfig, item: Override, groups: Collection[str], error: Exception
) -> UserError:
    missing = _missing_key(OmegaConf.to_container(config, resolve=False), item.key_or_group)
    if missing is None:
        return UserError(f"{item.key_or_group} can't be set so: {first_line(error)}", _named(item), "")
    parent, name, keys = missing
    options = keys if parent else sorted({*keys, *(group for group in groups if "/" not in group)})
    kind = f"key in {parent}" if parent else "config group or key"
    way_out = f"{did_you_mean(name, options)}options: {listed(options)}"
    return UserError(f'There is no {kind} called "{name}".', _named(item), way_out)


def _missing_key(config: Any, key: str) -> tuple[str, str, list[str]] | None:
    """The first step of a dotted key that a config lacks: (parent, step, keys there); None when all exist."""
    steps = key.split(".")
    for depth, step in enumerate(steps):
        if not isinstance(config, dict) or step not in config:
            return ".".join(steps[:depth]), step, list(config) if isinstance(config, dict) else []
        config = config[step]
    return None


def problem_report(tree: ConfigTree, problems: Sequence[Problem]) -> UserError:
    if len(problems) == 1:
        problem = problems[0]
        return UserError(problem.what, source_of(tree, problem.key), problem.way_out)
    lines = []
    for problem in problems[:_PROBLEMS_SHOWN]:
        way_out = f"; {problem.way_out}" if problem.way_out else ""
        lines.append(f"{problem.what} ({source_of(tree, problem.key)}{way_out})")
    if len(problems) > _PROBLEMS_SHOWN:
        lines.append(f"and {len(problems) - _PROBLEMS_SHOWN} more")
    what = f"{len(problems)} things are wrong in the config:\n  - " + "\n  - ".join(lines)
    return UserError(what, "", "")


def source_of(tree: ConfigTree, key: str) -> str:
    """Where the value at a key path came from: an override, or the YAML file of the closest group."""
    keys = {key, *_interpolated_keys(tree.config, key)} - {""}
    groups = group_names(tree.folders)
    parsed = [
        item
        for item in parse_overrides(tree.overrides)
        if item.key_or_group not in groups and not item.is_delete()
    ]
    exact = [item for item in parsed if item.key_or_group in keys]
    related = [item for item in parsed if any(_touches(item.key_or_group, wanted) for wanted in keys)]
    if exact or related:
        return ", ".join(_named(item) for item in exact[-1:] or related)
    return str(_source_file(tree, key))


def _interpolated_keys(config: DictConfig, key: str) -> set[str]:
    """The config keys that the values at or below a key path interpolate."""
    plain: Any = OmegaConf.to_container(config, resolve=False)
    for step in key.split("."):
        if not isinstance(plain, dict) or step not in plain:
            return set()
        plain = plain[step]
    return set(_INTERPOLATED_KEY.findall(str(plain)))


def _touches(override_key: str, key: str) -> bool:
    dotted = override_key.replace("/", ".")
    return dotted == key or dotted.startswith(f"{key}.") or key.startswith(f"{dotted}.")


def _source_file(tree: ConfigTree, key: str) -> Path:
    steps = key.split(".")
    if steps[0] == "benchmarks" and len(steps) > 1:
        return _file(tree.folders, f"benchmark/{steps[1]}")
    for depth in range(len(steps), 0, -1):
        group = "/".join(steps[:depth])
        if isinstance(tree.choices.get(group), str):
            return _file(tree.folders, f"{group}/{tree.choices[group]}")
    return _file(tree.folders, "config")


def _file(folders: Sequence[Path], name: str) -> Path:
    found = [folder / f"{name}.yaml" for folder in folders if (folder / f"{name}.yaml").is_file()]
    return found[0] if found else folders[0] / "config.yaml"


def _named(item: Override) -> str:
    return f'override "{item.input_line}"'
