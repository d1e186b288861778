"""Which of the paper's figures stand beside an arm: those of the arm's own training set and policy.

A study whose training sets are none of the paper's (a laptop's, say) stands beside the first set of the
paper's table, to show what the table is about; no difference is taken then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
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
    """What the paper calls what an arm was trained on, and with; "" for what is none of the paper's."""

    training_set: str
    model: str

    @property
    def own(self) -> bool:
        """Whether both are the paper's, so that a difference means something."""
        return bool(self.training_set and self.model)


def paper_setting(study: Study, arm: Arm) -> PaperSetting:
    """An arm's data and policy by the paper's names."""
    return PaperSetting(training_set_name(arm.dataset), _named(_MODELS, _model_names(study, arm)))


def set_beside(study: Study, arms: Sequence[Arm], table: str, metrics: Collection[str]) -> str | None:
    """The training set of which metrics of `analysis/reported/<table>.csv` get columns, None for no columns.

    "" stands for each arm's own, when one was trained on a set of the paper's. Where none was, the paper's
    figures are there for orientation, and those of the first set that has any do.
    """
    if any(paper_setting(study, arm).training_set for arm in arms):
        return ""
    return next((figure.training_set for figure in reported_figures(table) if figure.metric in metrics), None)


def figures_beside(
    study: Study, arm: Arm, table: str, metric: str, training_set: str, by_tau: bool = False
) -> tuple[Reported, ...]:
    """What a table's CSV reports for the arm's method; several where the paper contradicts itself.

    training_set: what `set_beside` gives. by_tau: for the arm's threshold too; otherwise for the method as
    the paper sets it.
    """
    setting = paper_setting(study, arm)
    model = setting.model if setting.training_set else ""
    wanted = (training_set or setting.training_set, arm.method, metric, arm.tau if by_tau else None)
    return tuple(
        figure
        for figure in reported_figures(table)
        if (figure.training_set, figure.method, figure.metric, figure.tau) == wanted
        and (not model or figure.model in ("", model))
    )


def paper_group(study: Study, arms: Sequence[Arm], training_set: str) -> str:
    """The spanning header over the reported columns of what `set_beside` gives."""
    own = dict.fromkeys(paper_setting(study, arm).training_set for arm in arms)
    return f"Paper, {training_set or ', '.join(filter(None, own))}"


def difference_note(study: Study, arms: Sequence[Arm], tables: Sequence[str]) -> tuple[str, ...]:
    """Why there is no difference to the paper's figures, as one sentence; nothing when there is one."""
    if not tables or any(paper_setting(study, arm).own for arm in arms):
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
