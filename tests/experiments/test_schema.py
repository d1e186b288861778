"""The schema: every field declared, strict types, problems named by their key path."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from experiments.compose import compose_cell
from experiments.schema import (
    ENGINES,
    METHOD_PARTS,
    CellSettings,
    build_settings,
    check_config,
    check_fields,
)
from fastrl.engines.reference.settings import TrainingSettings


@dataclass(frozen=True)
class Inner:
    rate: float


@dataclass(frozen=True)
class Cat:
    kind: Literal["cat"]
    lives: int


@dataclass(frozen=True)
class Example:
    tau: float
    n: int
    mode: Literal["slow", "fast"]
    betas: tuple[float, ...]
    limit: int | None
    inner: Inner
    named: dict[str, Inner]

    def __post_init__(self) -> None:
        if self.tau > 1:
            raise ValueError(f"tau={self.tau} is above 1")


GOOD: dict[str, Any] = {
    "tau": 0.5,
    "n": 3,
    "mode": "slow",
    "betas": [0.9, 0.99],
    "limit": None,
    "inner": {"rate": 1.0},
    "named": {"a": {"rate": 2.0}},
}


def problem(**changes: Any) -> tuple[str, str, str]:
    _, problems = check_fields(Example, {**GOOD, **changes}, "part")
    assert len(problems) == 1
    return problems[0].key, problems[0].what, problems[0].way_out


def test_good_values_pass_unchanged() -> None:
    assert check_fields(Example, GOOD) == (GOOD, [])


def test_whole_numbers_become_floats_where_a_float_is_declared() -> None:
    checked, problems = check_fields(Example, {**GOOD, "tau": 1, "betas": [0, 1], "inner": {"rate": 3}})
    assert problems == []
    assert repr(checked["tau"]) == "1.0"
    assert repr(checked["betas"]) == "[0.0, 1.0]"
    assert repr(checked["inner"]["rate"]) == "3.0"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2.0),
        ("n", "2"),
        ("n", True),
        ("n", None),
        ("tau", "0.5"),
        ("tau", True),
        ("betas", 0.9),
        ("limit", 1.5),
        ("inner", 3),
        ("mode", 1),
    ],
)
def test_nothing_else_is_converted(field: str, value: object) -> None:
    key, what, _ = problem(**{field: value})
    assert key == f"part.{field}"
    assert f"part.{field}=" in what


def test_unknown_key_names_the_closest_and_all_known_ones() -> None:
    key, what, way_out = problem(taw=1)
    assert key == "part.taw"
    assert "part.taw=1" in what
    assert 'did you mean "tau"?' in way_out
    assert "betas, inner, limit, mode, n, named, tau" in way_out


def test_unknown_key_inside_a_section_and_inside_named_sections() -> None:
    assert problem(inner={"rate": 1.0, "rat": 2})[0] == "part.inner.rat"
    key, _, way_out = problem(named={"a": {"rate": 1.0, "raet": 2}})
    assert key == "part.named.a.raet"
    assert 'did you mean "rate"?' in way_out


def test_missing_key_is_named() -> None:
    _, problems = check_fields(Example, {key: value for key, value in GOOD.items() if key != "mode"})
    assert [(found.key, found.what) for found in problems] == [("mode", "mode is missing")]


def test_choice_lists_its_options() -> None:
    _, what, way_out = problem(mode="fats")
    assert 'part.mode="fats"' in what
    assert way_out == 'did you mean "fast"? options: fast, slow'


def test_a_dataclass_complaint_about_a_field_is_named_by_that_field() -> None:
    assert problem(tau=1.5)[:2] == ("part.tau", "part.tau=1.5 is above 1")


def test_settings_are_built_as_the_dataclass() -> None:
    built, problems = build_settings(Example, GOOD)
    assert problems == []
    assert built == Example(0.5, 3, "slow", (0.9, 0.99), None, Inner(1.0), {"a": Inner(2.0)})


def test_a_union_is_told_apart_by_its_kind() -> None:
    config = compose_cell([])
    config["model"]["kind"] = "hub"
    _, problems = check_config(config)
    assert {found.key for found in problems} >= {"model.path", "model.builder", "model.sft"}
    assert not any("Llama" in found.key or "hub" in found.key for found in problems)


def declared_settings() -> list[type[Any]]:
    found: list[type[Any]] = []
    queue: list[Any] = [CellSettings, *ENGINES.values(), TrainingSettings]
    queue += [part for registry in METHOD_PARTS.values() for part in registry.values()]
    while queue:
        kind = queue.pop()
        if kind in found:
            continue
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            found.append(kind)
            queue += typing.get_type_hints(kind).values()
        elif isinstance(kind, type) and issubclass(kind, CellSettings):
            queue += [field.annotation for field in kind.model_fields.values()]
        else:
            queue += getattr(kind, "__args__", ())
    return found


@pytest.mark.parametrize("settings", declared_settings(), ids=lambda kind: kind.__name__)
def test_no_declared_field_has_a_default(settings: type[Any]) -> None:
    defaults = [
        field.name
        for field in dataclasses.fields(settings)
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    ]
    assert defaults == []
