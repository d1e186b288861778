"""Which columns of a file of rollouts hold what: named formats in `conf/replay/format/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from experiments.errors import UserError, did_you_mean, listed

_FOLDER = Path(__file__).parents[1] / "conf" / "replay" / "format"


@dataclass(frozen=True)
class RolloutFormat:
    """For each field the column names that may hold it, the preferred one first."""

    step: tuple[str, ...]
    group: tuple[str, ...]
    question: tuple[str, ...]
    tokens: tuple[str, ...]
    response: tuple[str, ...]
    reward: tuple[str, ...]
    accuracy: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """The columns of one file. group: None where the question tells groups apart. tokens: None where the text
    of the response has to be tokenised. accuracy: None where it is not recorded."""

    step: str
    group: str | None
    question: str
    tokens: str | None
    response: str | None
    reward: str
    accuracy: str | None

    @property
    def names(self) -> list[str]:
        found = [
            self.step,
            self.group,
            self.question,
            self.tokens or self.response,
            self.reward,
            self.accuracy,
        ]
        return [name for name in found if name is not None]


def named_format(name: str, columns: Mapping[str, str]) -> RolloutFormat:
    """A format of `conf/replay/format/` with some fields read from other columns. Raises UserError."""
    names = sorted(path.stem for path in _FOLDER.glob("*.yaml"))
    if name not in names:
        raise UserError(
            f'There is no rollout format "{name}".',
            "format",
            f"{did_you_mean(name, names)}formats: {listed(names)}",
        )
    fields = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    for field in columns:
        if field not in fields:
            raise UserError(
                f'A trajectory has no field "{field}".',
                f"columns.{field}",
                f"{did_you_mean(field, fields)}fields: {listed(fields)}",
            )
    chosen = {**fields, **{field: [column] for field, column in columns.items()}}
    return RolloutFormat(**{field: tuple(value) for field, value in chosen.items()})


def columns_in(available: Sequence[str], rollout_format: RolloutFormat, where: str) -> Columns:
    """The columns of a file that the format reads. Raises UserError naming a field that it lacks."""

    def first(field: str) -> str | None:
        return next((name for name in getattr(rollout_format, field) if name in available), None)

    def needed(field: str) -> str:
        name = first(field)
        if name is None:
            raise _missing(field, rollout_format, available, where)
        return name

    tokens, response = first("tokens"), first("response")
    if tokens is None and response is None:
        raise _missing("tokens", rollout_format, available, where)
    return Columns(
        needed("step"),
        first("group"),
        needed("question"),
        tokens,
        response,
        needed("reward"),
        first("accuracy"),
    )


def _missing(field: str, rollout_format: RolloutFormat, available: Sequence[str], where: str) -> UserError:
    tried = ", ".join(getattr(rollout_format, field))
    return UserError(
        f"No column holds the {field} of a trajectory (looked for {tried}).",
        where,
        f"columns there: {', '.join(available)}; name one with columns.{field}=NAME, or another format",
    )
