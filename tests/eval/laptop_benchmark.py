"""The laptop benchmarks as experiments/conf composes them, and a small one for quick evaluations."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

CONF = Path(__file__).parents[2] / "experiments" / "conf"


@cache
def composed() -> dict[str, dict[str, Any]]:
    """Both benchmarks, by name."""
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = compose(overrides=["+benchmark=[laptop_geometry,laptop_geometry_ood]"])
    benchmarks: dict[str, dict[str, Any]] = OmegaConf.to_container(config.benchmarks, resolve=True)  # type: ignore[assignment]
    return benchmarks


def small_benchmark(**changes: Any) -> dict[str, Any]:
    """laptop_geometry with 16 questions, batches of 24 responses, and the given fields."""
    benchmark = copy.deepcopy(composed()["laptop_geometry"])
    benchmark["dataset"]["splits"]["sizes"]["validation"] = 16
    benchmark |= {
        "batch_size": 24,
        "max_gen_toks": 24,
        "decodings": {
            "t1": {"temperature": 1.0, "samples": 4},
            "t0_6": {"temperature": 0.6, "samples": 4},
            "greedy": {"temperature": 0.0, "samples": 1},
        },
        "pass_k": [1, 2, 4],
        "truncation_alarm": 1.0,
    }
    return benchmark | changes
