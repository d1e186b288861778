"""Which of the paper's figures stand beside an arm: those of the arm's own training set and policy.

An arm on other data or with another policy (a laptop's, say) stands beside the training set that the paper's
table puts first, to show what the column is about; no difference is taken then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.measures import setting_of
from analysis.reported import Reported, reported_figures
from analysis.study import Arm, Study

_TRAINING_SETS = {
    "Geometry3K": ("geometry3k", "geo3k"),
    "GeoQA8K": ("geoqa8k", "geoqa8kr1v", "geoqar1v"),
    "MATH": ("math", "math12k", "math12500"),
    "OS-Atlas": ("osatlas", "osatlasgrounding"),
}
_MODELS = {
    "Qwen2.5-VL-7B": ("qwen25vl7b", "qwen25vl7binstruct"),
    "Qwen3-VL-8B": ("qwen3vl8b", "qwen3vl8binstruct"),
    "Llama3.1-8B": ("llama318b", "llama318binstruct"),
    "Qwen3.5-9B": ("qwen359b",),
}
"""The paper's names, and the names of configs and hub folders that mean the same, letters and digits only."""


@dataclass(frozen=True)
class PaperSetting:
    """What the paper trained, as near to an arm as its table has it.

    model: "" when the arm's is none of the paper's. own: both are the paper's, so that a difference means
    something.
    """

    training_set: str
    model: str
    own: bool


def paper_setting(study: Study, arm: Arm, table: str) -> PaperSetting:
    """The setting of `analysis/reported/<table>.csv` that an arm stands beside; one of the paper's own sets
    stands beside itself alone, also where the table reports nothing of it."""
    known = tuple(dict.fromkeys(figure.training_set for figure in reported_figures(table)))
    training_set = training_set_name(arm.dataset)
    if not training_set:
        return PaperSetting(known[0], "", own=False)
    model = _named(_MODELS, _model_names(study, arm))
    return PaperSetting(training_set, model, own=bool(model))


def figures_beside(
    study: Study, arm: Arm, table: str, metric: str, by_tau: bool = False
) -> tuple[Reported, ...]:
    """What a table's CSV reports for the arm's method; several where the paper contradicts itself.

    by_tau: for the arm's threshold too; otherwise for the method as the paper sets it.
    """
    setting = paper_setting(study, arm, table)
    wanted = (setting.training_set, arm.method, metric, arm.tau if by_tau else None)
    return tuple(
        figure
        for figure in reported_figures(table)
        if (figure.training_set, figure.method, figure.metric, figure.tau) == wanted
        and (not setting.model or figure.model in ("", setting.model))
    )


def paper_group(study: Study, arms: Sequence[Arm], table: str) -> str:
    """The spanning header over a table's reported columns."""
    names = dict.fromkeys(paper_setting(study, arm, table).training_set for arm in arms)
    return f"Paper, {', '.join(names)}"


def difference_note(study: Study, arms: Sequence[Arm], tables: Sequence[str]) -> tuple[str, ...]:
    """Why there is no difference to the paper's figures, as one sentence; nothing when there is one."""
    if not tables or any(paper_setting(study, arm, table).own for arm in arms for table in tables):
        return ()
    return (
        "No difference to the paper is given, since the policy and the training questions are not the "
        "paper's own.",
    )


def training_set_name(dataset: str) -> str:
    """The paper's name of a data set, "" when it is none of the paper's."""
    return _named(_TRAINING_SETS, (dataset,))


def _named(names: dict[str, tuple[str, ...]], found: Sequence[str]) -> str:
    plain = {re.sub("[^a-z0-9]", "", name.lower()) for name in found}
    return next((name for name, aliases in names.items() if plain & set(aliases)), "")


def _model_names(study: Study, arm: Arm) -> tuple[str, ...]:
    """The arm's model by its config's name and by the last part of its path."""
    configs = [study.records[run].config for run in arm.runs.values() if run in study.records]
    paths = [str(setting_of(config, "model.path") or "") for config in configs]
    return (arm.model, *(path.rstrip("/").rpartition("/")[2] for path in paths))
