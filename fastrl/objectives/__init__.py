"""Objectives: the advantage estimate and the loss of a method. Importing them needs no torch."""

from __future__ import annotations

from fastrl.objectives.base import Objective
from fastrl.objectives.dapo import Dapo
from fastrl.objectives.dapo_overlong import DapoOverlong
from fastrl.objectives.dr_grpo import DrGrpo
from fastrl.objectives.grpo import Grpo
from fastrl.objectives.gspo import Gspo
from fastrl.objectives.gspo_token import GspoToken

OBJECTIVES: dict[str, type[Objective]] = {
    "dapo": Dapo,
    "dapo_overlong": DapoOverlong,
    "dr_grpo": DrGrpo,
    "grpo": Grpo,
    "gspo": Gspo,
    "gspo_token": GspoToken,
}
