"""A method is four parts, objective x prompt filter x rollout schedule x selector, built from a mapping.

Importing this, checking a configuration and building a method need no torch.
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fastrl.filters import FILTERS
from fastrl.filters.base import PromptFilter
from fastrl.objectives import OBJECTIVES
from fastrl.objectives.base import Objective
from fastrl.schedules import SCHEDULES
from fastrl.schedules.base import RolloutSchedule, State
from fastrl.selectors import SELECTORS
from fastrl.selectors.base import PlansQuestions, Selector

Prune = Literal["before_logprob", "after_logprob"]

STATE_SCHEMA = 1
_REGISTRIES: dict[str, Mapping[str, type]] = {
    "objective": OBJECTIVES,
    "prompts": FILTERS,
    "rollouts": SCHEDULES,
    "selector": SELECTORS,
}


class MethodError(ValueError):
    """A method configuration, or a saved method state, that cannot be used."""


@dataclass(frozen=True)
class Method:
    """The four parts of a method, and when pruning happens: before or after old and reference log-probs."""

    objective: Objective
    prompts: PromptFilter
    rollouts: RolloutSchedule
    selector: Selector
    prune: Prune


@dataclass(frozen=True)
class MethodState:
    """The states of a method's two stateful parts."""

    prompts: State
    rollouts: State


def build_method(config: Mapping[str, Any]) -> Method:
    """Build a method from `{objective, prompts, rollouts, selector: {name: ..., fields}, prune: ...}`.

    The keys `name` and `label` of a method may be there, too; nothing depends on them. MethodError names
    everything that is wrong, see `method_problems`.
    """
    parts, problems = _checked(config)
    if problems:
        raise MethodError("\n".join(problems))
    return Method(prune=config["prune"], **parts)


def method_problems(config: Mapping[str, Any]) -> list[str]:
    """What is wrong with a method configuration, one sentence each; empty if it can be built.

    Unknown or missing parts and fields, with the known ones and the closest match; values of a wrong type or
    out of range; parts that do not go together, as CPPO with a number of rollouts that its rate does not
    divide.
    """
    return _checked(config)[1]


def planned_questions(method: Method, questions: int) -> int:
    """Questions a step samples where a step without pruning has `questions`, as the selector plans it."""
    selector = method.selector
    return selector.planned_questions(questions) if isinstance(selector, PlansQuestions) else questions


def initial_method_state(method: Method) -> MethodState:
    return MethodState(prompts=method.prompts.initial_state(), rollouts=method.rollouts.initial_state())


def save_method_state(method: Method, state: MethodState) -> dict[str, Any]:
    """The JSON-able form for a checkpoint: each state with the part that it belongs to."""
    return {
        "schema": STATE_SCHEMA,
        "prompts": {"part": type(method.prompts).__name__, "state": state.prompts},
        "rollouts": {"part": type(method.rollouts).__name__, "state": state.rollouts},
    }


def restore_method_state(method: Method, saved: Mapping[str, Any]) -> MethodState:
    """The inverse of `save_method_state`; MethodError on another schema, part, version or shape."""
    if saved.get("schema") != STATE_SCHEMA:
        raise MethodError(
            f"the checkpoint's method state has schema {saved.get('schema')!r}, this code reads "
            f"{STATE_SCHEMA}; resume with the version that wrote it, or start the run again"
        )
    return MethodState(
        prompts=_restored("prompts", method.prompts, saved.get("prompts")),
        rollouts=_restored("rollouts", method.rollouts, saved.get("rollouts")),
    )


def _restored(key: str, part: PromptFilter | RolloutSchedule, saved: Any) -> State:
    name, initial = type(part).__name__, part.initial_state()
    if not isinstance(saved, Mapping) or not isinstance(saved.get("state"), Mapping):
        raise MethodError(
            f"the checkpoint's {key} state is {str(saved)[:200]!r}, not a part's name with its state; go "
            "back to an older checkpoint, or start the run again"
        )
    if saved.get("part") != name:
        raise MethodError(
            f"the checkpoint's {key} state belongs to {saved.get('part')}, but the method has {name}; "
            "resume with the method of the checkpoint"
        )
    state = dict(saved["state"])
    if state.get("version") != initial["version"]:
        raise MethodError(
            f"the checkpoint's {key} state of {name} has version {state.get('version')!r}, this code reads "
            f"{initial['version']}; resume with the version that wrote it, or start the run again"
        )
    if state.keys() != initial.keys():
        raise MethodError(
            f"the checkpoint's {key} state of {name} holds {', '.join(sorted(state))}; this code reads "
            f"{', '.join(sorted(initial))}; resume with the version that wrote it, or start the run again"
        )
    return state


def _checked(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The parts that could be built, and what is wrong."""
    known = ["name", "label", *_REGISTRIES, "prune"]
    prunes = typing.get_args(Prune)
    problems = [f"method.{key}: unknown key; {_known(str(key), known)}" for key in config if key not in known]
    problems += [f"method.{key} is missing" for key in (*_REGISTRIES, "prune") if key not in config]
    if "prune" in config and config["prune"] not in prunes:
        problems.append(f"method.prune={config['prune']!r}: {_known(str(config['prune']), prunes)}")
    parts: dict[str, Any] = {}
    for key in _REGISTRIES:
        if key in config:
            parts[key], complaints = _built_part(key, config[key])
            problems += complaints
    if not problems:
        problems += _conflicts(parts["rollouts"], parts["selector"])
    return parts, problems


def _conflicts(rollouts: RolloutSchedule, selector: Selector) -> list[str]:
    possible = rollouts.possible_n()
    problems = []
    if min(possible) < 2:
        problems.append("method.rollouts: a group of one trajectory has advantage 0; use at least 2 rollouts")
    complaints = ((n, selector.problem_with(n)) for n in possible)
    return problems + [
        f"method.selector with {n} rollouts: {complaint}" for n, complaint in complaints if complaint
    ]


def _built_part(key: str, part: Any) -> tuple[Any, list[str]]:
    """A part built from its mapping, or None with what is wrong."""
    where, registry = f"method.{key}", _REGISTRIES[key]
    if not isinstance(part, Mapping) or "name" not in part:
        return None, [f"{where} must be a mapping with a name, got {part!r}"]
    name = part["name"]
    if name not in registry:
        return None, [f"{where}.name={name!r} is unknown; {_known(str(name), registry)}"]
    kind = registry[name]
    types = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    given = {field: value for field, value in part.items() if field != "name"}
    problems = [
        f"{where}.{field}: {name} has no such field; {_known(str(field), fields)}"
        for field in given
        if field not in fields
    ]
    problems += [f"{where}.{field} is missing; {name} needs it" for field in fields if field not in given]
    values: dict[str, Any] = {}
    for field in fields:
        if field in given:
            try:
                values[field] = _converted(given[field], types[field])
            except ValueError as error:
                problems.append(f"{where}.{field}={given[field]!r}: {error}")
    if problems:
        return None, problems
    try:
        return kind(**values), []
    except ValueError as error:
        return None, [f"{where} ({name}): {error}"]


def _converted(value: Any, kind: Any) -> Any:
    """The value as the field's type: an int may stand for a float and a list for a tuple, nothing else."""
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        if value not in arguments:
            raise ValueError(_known(str(value), arguments))
        return value
    if typing.get_origin(kind) is tuple:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(f"a list of {arguments[0].__name__} is needed, got {type(value).__name__}")
        return tuple(_converted(item, arguments[0]) for item in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"a value of type {kind.__name__} is needed, got {type(value).__name__}")
    return value


def _known(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"known: {', '.join(names) or 'none'}" + (f"; did you mean {close[0]!r}?" if close else "")
