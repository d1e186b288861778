"""Objectives: the advantage estimate and the loss of a method. Importing them needs no torch."""

from __future__ import annotations

from fastrl.objectives.base import Objective
from fastrl.objectives.dapo import Dapo
from fastrl.objectives.dr_grpo import DrGrpo
from fastrl.objectives.grpo import Grpo
from fastrl.objectives.gspo import Gspo

OBJECTIVES: dict[str, type[Objective]] = {"grpo": Grpo, "dr_grpo": DrGrpo, "dapo": Dapo, "gspo": Gspo}
