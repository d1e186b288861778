"""The names of arms in tables: one name an arm, as short as tells them apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.errors import UserError, did_you_mean, listed
from experiments.identity import arm_id, flattened, identity_part

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SYMBOLS = {"tau": "τ"}


def fill_template(template: str, words: Mapping[str, str], where: str) -> str:
    """Put words into a label template's `{name}` places; UserError for a name that is not there."""
    for name in _PLACEHOLDER.findall(template):
        if name not in words:
            way_out = f"{did_you_mean(name, words)}names: {listed(words)}"
            raise UserError(f'The label "{template}" uses the unknown name "{name}".', where, way_out)
    return _PLACEHOLDER.sub(lambda match: words[match[1]], template)


def value_text(value: Any) -> str:
    """A setting's value as labels show it: `1`, `0.6`, `2e-4`, `none`."""
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        digits, _, exponent = f"{value:e}".partition("e")
        return f"{float(digits):g}e{int(exponent)}"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def distinct_labels(cells: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """A label for each arm id, from (wanted label, resolved config) of every cell.

    An arm takes the label of its first cell. Where one label would name several arms, the settings in which
    they differ are appended to each of them: `FastRL` becomes `FastRL τ=0.6` and `FastRL τ=1`.
    """
    wanted: dict[str, str] = {}
    settings: dict[str, dict[str, Any]] = {}
    for label, config in cells:
        arm = arm_id(config)
        if arm not in wanted:
            wanted[arm] = label
            settings[arm] = flattened(identity_part(config))
    labels = dict(wanted)
    for arms in _sharing(wanted):
        keys = _differing([settings[arm] for arm in arms])
        for arm in arms:
            labels[arm] = f"{wanted[arm]} {', '.join(_pair(key, settings[arm]) for key in keys)}"
    for arms in _sharing(labels):  # a label as written can equal one made here
        for arm in arms:
            labels[arm] = f"{labels[arm]} ({arm.rpartition('-')[2]})"
    return labels


def _sharing(labels: Mapping[str, str]) -> list[list[str]]:
    """The arms of each label that more than one arm has."""
    arms: dict[str, list[str]] = {}
    for arm, label in labels.items():
        arms.setdefault(label, []).append(arm)
    return [sharing for sharing in arms.values() if len(sharing) > 1]


def _differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys whose values are not the same in all settings; a method's name only where nothing else differs."""
    keys = sorted({key for item in settings for key in item if key != "seed"})
    differing = [key for key in keys if len({repr(item.get(key)) for item in settings}) > 1]
    return [key for key in differing if key != "method.name"] or differing


def _pair(key: str, settings: Mapping[str, Any]) -> str:
    name = key.rpartition(".")[2]
    return f"{_SYMBOLS.get(name, name)}={value_text(settings.get(key))}"
