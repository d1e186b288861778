"""Rollout schedules: how many trajectories to sample per question."""

from __future__ import annotations

from fastrl.schedules.ars import Ars
from fastrl.schedules.base import RolloutSchedule
from fastrl.schedules.fixed import Fixed
from fastrl.schedules.replay import Replay

SCHEDULES: dict[str, type[RolloutSchedule]] = {
    "ars": Ars,
    "fixed": Fixed,
    "replay": Replay,
}
