"""Hydra's sweep grammar: from overrides that name several values to the overrides of each cell."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from hydra.core.override_parser.types import Glob, Override

from experiments.config_tree import group_options, parse_overrides
from experiments.errors import UserError


def expand(overrides: Sequence[str], folders: Sequence[Path], where: str) -> list[tuple[str, ...]]:
    """The product of the sweeps among overrides, the last one changing fastest.

    Raises UserError, naming `where` they stand, for overrides that can't be read or name no value.
    """
    values = [_values(override, folders, where) for override in parse_overrides(overrides, where)]
    return list(itertools.product(*values))


def _values(override: Override, folders: Sequence[Path], where: str) -> list[str]:
    """One override string for each value of a sweep; the override itself when it is none."""
    text = str(override.input_line)
    if not override.is_sweep_override():
        return [text]
    if not override.is_discrete_sweep():
        way_out = "name the values: a,b,c or choice(a,b,c) or range(start,stop)"
        raise UserError(f'"{text}" is not a list of values.', where, way_out)
    value = override.value()
    if isinstance(value, Glob):
        names = value.filter(group_options(folders, override.key_or_group))
    else:
        names = list(override.sweep_string_iterator())
    if not names:
        raise UserError(f'"{text}" names no value.', where, "name at least one, or leave the entry out")
    return [f"{override.get_key_element()}={name}" for name in names]


def merged(layers: Sequence[Sequence[str]], where: str) -> list[str]:
    """Overrides of all layers; a later one of the same key takes the place of an earlier one."""
    merged: dict[str, str] = {}
    for layer in layers:
        for override in parse_overrides(layer, where):
            merged[override.key_or_group] = str(override.input_line)
    return list(merged.values())
