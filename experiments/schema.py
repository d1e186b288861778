"""The typed schema of a resolved config: every field declared, none with a default, unknown keys refused.

The parts declare their own settings as frozen dataclasses; this module puts them together and checks a plain
config against them with pydantic, strictly (an int may stand for a float, nothing else is converted).
torch is not imported here.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from eval.benchmark_settings import BenchmarkSettings
from eval.datasets.settings import DatasetSettings
from experiments.cluster_settings import ClusterSettings
from experiments.errors import did_you_mean, listed
from experiments.policies.settings import HubModel, LaptopLlama, LaptopVision
from fastrl.engines.easyr1.settings import EASYR1_ENGINES, EasyR1Settings
from fastrl.engines.reference.settings import REFERENCE_ENGINES, TrainingSettings
from fastrl.filters import FILTERS
from fastrl.objectives import OBJECTIVES
from fastrl.schedules import SCHEDULES
from fastrl.selectors import SELECTORS

METHOD_PARTS: dict[str, Mapping[str, type[Any]]] = {
    "objective": OBJECTIVES,
    "prompts": FILTERS,
    "rollouts": SCHEDULES,
    "selector": SELECTORS,
}
ENGINES: dict[str, type[Any]] = {
    **REFERENCE_ENGINES,
    **dict.fromkeys(EASYR1_ENGINES, EasyR1Settings),
}

Settings = TypeVar("Settings")
_STRICT = ConfigDict(
    extra="forbid", strict=True, allow_inf_nan=False, ser_json_inf_nan="constants", protected_namespaces=()
)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a config: the key path, what is wrong with its value, what to write instead."""

    key: str
    what: str
    way_out: str


@dataclass(frozen=True)
class TrackingSettings:
    """Where `fastrl track` brings finished runs. uri: MLflow's tracking URI, empty for `none`."""

    name: Literal["sqlite", "server", "none"]
    uri: str

    def __post_init__(self) -> None:
        if self.name != "none" and not self.uri:
            raise ValueError(
                f"uri is empty, and {self.name} needs one: set tracking.uri, or choose tracking=none"
            )


@dataclass(frozen=True)
class PathSettings:
    """root: the results folder, relative to the working directory or absolute."""

    root: str


@dataclass(frozen=True)
class MethodSettings:
    """A method as YAML has it; each part is checked against the dataclass that its `name` registers."""

    name: str
    label: str
    objective: dict[str, Any]
    prompts: dict[str, Any]
    rollouts: dict[str, Any]
    selector: dict[str, Any]
    prune: Literal["before_logprob", "after_logprob"]


_BuiltModel = Annotated[LaptopLlama | LaptopVision, Field(discriminator="builder")]


class CellSettings(BaseModel):
    """The whole resolved config of a cell.

    schema_version is part of every run's identity: raise it, here and in `conf/config.yaml`, when the meaning
    of a field changes.
    """

    model_config = _STRICT

    schema_version: Literal[1]
    seed: int = Field(ge=0)
    method: MethodSettings
    model: Annotated[HubModel | _BuiltModel, Field(discriminator="kind")]
    dataset: Annotated[DatasetSettings, Field(discriminator="source")]
    training: dict[str, Any]
    engine: dict[str, Any]
    benchmarks: dict[str, BenchmarkSettings]
    cluster: ClusterSettings
    tracking: TrackingSettings
    paths: PathSettings


def check_config(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Check a resolved config against the schemas.

    Returns the config with every value in its declared type (a float field given an int becomes a float), of
    meaning only when there are no problems, and the problems.
    """
    checked, problems = check_fields(CellSettings, config)
    if problems:
        return checked, problems
    for part, registry in METHOD_PARTS.items():
        checked["method"][part], found = _check_named(f"method.{part}", checked["method"][part], registry)
        problems += found
    checked["engine"], found = _check_named("engine", checked["engine"], ENGINES)
    problems += found
    if not found:
        name = checked["training"].get("name")
        checked["training"], found = _check_named("training", checked["training"], {name: TrainingSettings})
        problems += found
    return checked, problems


def check_fields(schema: type[Any], value: Any, key: str = "") -> tuple[dict[str, Any], list[Problem]]:
    """Check a plain mapping against a dataclass or pydantic model; problems are named from the path `key`.

    Returns the problems too; when there are some, the mapping (every value in its declared type) is empty.
    """
    model, problems = _validated(schema, value, key)
    plain: dict[str, Any] = model.model_dump(mode="json")["value"] if model else {}
    return plain, problems


def build_settings(schema: type[Settings], value: Any) -> tuple[Settings | None, list[Problem]]:
    """The dataclass built from a plain mapping, or None and what is wrong with it."""
    model, problems = _validated(schema, value, "")
    return (model.value if model else None), problems  # type: ignore[attr-defined]


def _validated(schema: Any, value: Any, key: str) -> tuple[BaseModel | None, list[Problem]]:
    try:
        text = json.dumps({"value": value})
    except TypeError as error:
        return None, [
            Problem(key, f"{key or 'the config'} holds something other than plain YAML: {error}", "")
        ]
    try:
        return _model(schema).model_validate_json(text), []
    except ValidationError as error:
        return None, [_problem(schema, key, detail) for detail in error.errors(include_url=False)]


def _check_named(
    key: str, value: Mapping[str, Any], registry: Mapping[Any, type[Any]]
) -> tuple[dict[str, Any], list[Problem]]:
    """Check a section whose `name` says which dataclass declares its other fields."""
    name = value.get("name")
    if not isinstance(name, str):
        return {}, [Problem(f"{key}.name", f"{key}.name is missing", "")]
    if name not in registry:
        way_out = _way_out(name, list(registry), "options")
        return {}, [Problem(f"{key}.name", f"{key}.name={_shown(name)} is unknown", way_out)]
    fields = {field: item for field, item in value.items() if field != "name"}
    checked, problems = check_fields(registry[name], fields, key)
    return {"name": name, **checked}, problems


@cache
def _model(schema: Any) -> type[BaseModel]:
    """A pydantic model around a schema: a dataclass inside it takes on the strict configuration."""
    return create_model("Checked", __config__=_STRICT, value=(schema, ...))


def _problem(schema: type[Any], key: str, detail: ErrorDetails) -> Problem:
    steps, parent, leaf = _walked(schema, [str(step) for step in detail["loc"][1:]])
    path = ".".join([key, *steps] if key else steps)
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        known = list(_fields(parent))
        return Problem(
            path, f"{path}={_shown(value)}: there is no such key", _way_out(steps[-1], known, "known keys")
        )
    if kind in ("missing", "missing_argument"):
        return Problem(path, f"{path} is missing", "every field needs a value: write it in the YAML file")
    if kind == "value_error":
        return _value_problem(path, leaf, str(context["error"]))
    if kind == "union_tag_invalid":
        name = f"{path}.{context['discriminator'].strip(chr(39))}"
        way_out = _way_out(context["tag"], re.findall(r"'([^']*)'", context["expected_tags"]), "options")
        return Problem(name, f"{name}={_shown(context['tag'])} is unknown", way_out)
    if kind == "literal_error":
        way_out = _way_out(str(value), re.findall(r"'([^']*)'", context["expected"]), "options")
        return Problem(path, f"{path}={_shown(value)} is not one of the options", way_out)
    message = detail["msg"].replace("Input should be", "should be")
    return Problem(path, f"{path}={_shown(value)} {message}", "")


def _value_problem(path: str, schema: Any, message: str) -> Problem:
    """A dataclass's own complaint; one that starts with a field's name is about that field."""
    field = re.match(r"\w+", message)
    if path and field and field[0] in _fields(schema):
        return Problem(f"{path}.{field[0]}", f"{path}.{message}", "")
    if not path or message.startswith(f"{path}."):
        named = re.match(r"[\w.]+", message)
        return Problem(named[0] if named else path, message, "")
    return Problem(path, f"{path}: {message}", "")


def _walked(schema: Any, location: Sequence[str]) -> tuple[list[str], Any, Any]:
    """A pydantic error's location as config keys, without the tags of unions.

    Also the schema that declares the last key, and the key's own.
    """
    steps: list[str] = []
    parent = schema
    for step in location:
        members = [kind for kind in _members(schema) if dataclasses.is_dataclass(kind)]
        if len(members) > 1:  # tagged once more when several have the tag
            tagged = [kind for kind in members if _is_tagged(kind, step)]
            schema = functools.reduce(operator.or_, tagged) if tagged else None
            continue
        parent = members[0] if members else schema
        steps.append(step)
        schema = (
            _item(parent) if typing.get_origin(parent) in (dict, list, tuple) else _fields(parent).get(step)
        )
    return steps, parent, schema


def _members(schema: Any) -> tuple[Any, ...]:
    """The types a field may have: itself, or those of a union and of the unions in it."""
    if typing.get_origin(schema) is Annotated:
        schema = typing.get_args(schema)[0]
    if typing.get_origin(schema) not in (types.UnionType, typing.Union):
        return (schema,)
    return tuple(kind for member in typing.get_args(schema) for kind in _members(member))


def _is_tagged(schema: Any, tag: str) -> bool:
    return any(
        typing.get_origin(kind) is Literal and tag in typing.get_args(kind)
        for kind in _fields(schema).values()
    )


def _item(schema: Any) -> Any:
    """The type of a container's items."""
    return typing.get_args(schema)[-1 if typing.get_origin(schema) is dict else 0]


def _fields(schema: Any) -> Mapping[str, Any]:
    """The declared fields of a dataclass or pydantic model and their types; empty for anything else."""
    if isinstance(schema, type) and (dataclasses.is_dataclass(schema) or issubclass(schema, BaseModel)):
        return typing.get_type_hints(schema, include_extras=True)
    return {}


def _way_out(word: str, options: Sequence[str], kind: str) -> str:
    return f"{did_you_mean(word, options)}{kind}: {listed(options)}" if options else ""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
