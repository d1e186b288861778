"""The arms of a lag panel with the settings that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.measures import setting_of
from analysis.study import Arm, Study


@dataclass(frozen=True)
class LagArm:
    """An arm with the settings that the panel is about. updates: nominal, a step."""

    arm: Arm
    name: str
    updates: int
    learning_rate: float
    fixed: bool


def lag_arms(study: Study) -> tuple[LagArm, ...]:
    """The arms tagged "lag" whose config is there."""
    found = []
    for arm in study.tagged("lag"):
        records = [study.records[run_id] for run_id in arm.runs.values() if run_id in study.records]
        training = setting_of(records[0].config, "training") if records else None
        if isinstance(training, Mapping):
            name = str(setting_of(records[0].config, "method.label"))
            fixed = training["update_mode"] == "fixed"
            found.append(LagArm(arm, name, training["updates"], training["learning_rate"], fixed))
    return tuple(found)
