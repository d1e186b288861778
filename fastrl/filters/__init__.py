"""Prompt filters: which questions are sampled, and which sampled groups count."""

from __future__ import annotations

from fastrl.filters.all import AllPrompts
from fastrl.filters.base import PromptFilter
from fastrl.filters.dynamic_sampling import DynamicSampling
from fastrl.filters.greso import Greso
from fastrl.filters.greso_absolute import GresoAbsolute
from fastrl.filters.greso_ema import GresoEma

FILTERS: dict[str, type[PromptFilter]] = {
    "all": AllPrompts,
    "dynamic_sampling": DynamicSampling,
    "greso": Greso,
    "greso_absolute": GresoAbsolute,
    "greso_ema": GresoEma,
}
