"""Which run a configuration is: the part of it that decides the trained policy, digested.

Two configurations with the same identity share one run directory, whichever study names them. A walltime, a
path, a table's label or a benchmark's settings do not change it; any value that training reads does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

IDENTITY_KEYS = ("schema_version", "method", "model", "dataset", "training", "engine", "seed")
TRANSIENT_KEYS = ("benchmarks", "cluster", "tracking", "paths")
_DIGITS = 10


def identity_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a resolved config that decide its result.

    Not those are a `label`, for tables, a `kernel`, which computes the same faster, and a `root` or `home`,
    where data and code lie.
    """
    return {key: _deciding(config[key]) for key in IDENTITY_KEYS}


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of nested mappings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces. Raises ValueError on NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def run_id(config: Mapping[str, Any]) -> str:
    """`<method>-<model>-<dataset>-s<seed>-<10 hex>` of a resolved config."""
    names = "-".join(config[key]["name"] for key in ("method", "model", "dataset"))
    return f"{names}-s{config['seed']}-{digest(identity_part(config))}"


def arm_id(config: Mapping[str, Any]) -> str:
    """`<method>-<10 hex>`: what the cells that differ only in their seed have in common."""
    part = identity_part(config)
    del part["seed"]
    return f"{config['method']['name']}-{digest(part)}"


def _deciding(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        key: _deciding(item) for key, item in value.items() if key not in ("label", "kernel", "root", "home")
    }


def digest(value: Any) -> str:
    """Ten hex digits of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()[:_DIGITS]
