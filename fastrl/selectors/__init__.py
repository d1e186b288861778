"""Selectors: which sampled trajectories train the policy."""

from __future__ import annotations

from fastrl.selectors.advantage_only import AdvantageOnly
from fastrl.selectors.all import KeepAll
from fastrl.selectors.base import Selector
from fastrl.selectors.cppo import Cppo
from fastrl.selectors.dppo import Dppo
from fastrl.selectors.gfpo import Gfpo
from fastrl.selectors.mc_grpo import McGrpo
from fastrl.selectors.mdap import Mdap
from fastrl.selectors.pods import Pods
from fastrl.selectors.random_fraction import RandomFraction

SELECTORS: dict[str, type[Selector]] = {
    "advantage_only": AdvantageOnly,
    "all": KeepAll,
    "cppo": Cppo,
    "dppo": Dppo,
    "gfpo": Gfpo,
    "mc_grpo": McGrpo,
    "mdap": Mdap,
    "pods": Pods,
    "random": RandomFraction,
}
