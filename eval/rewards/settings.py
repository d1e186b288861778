"""What a reward config holds: the `reward` section of `experiments/conf/dataset/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BoxedAccuracyFormatSettings:
    """Fields of `eval.rewards.boxed_accuracy_format.BoxedAccuracyFormat`, and its name in `REWARDS`."""

    name: Literal["boxed_accuracy_format"]
    format_weight: float


@dataclass(frozen=True)
class BenchmarkAccuracyFormatSettings:
    """Fields of `eval.rewards.benchmark_accuracy_format.BenchmarkAccuracyFormat`, and its name."""

    name: Literal["benchmark_accuracy_format"]
    benchmark: Literal["geometry3k", "geoqa8k_r1v", "math"]
    rule: str
    response_format: Literal["think_then_box", "think_then_answer"]
    format_weight: float


@dataclass(frozen=True)
class GroundingSettings:
    """Fields of `eval.rewards.grounding.Grounding`, and its name in `REWARDS`."""

    name: Literal["grounding"]
    response_format: Literal["think_then_box", "think_then_answer"]
    iou_weight: float
    centre_weight: float
    format_weight: float


RewardSettings = BoxedAccuracyFormatSettings | BenchmarkAccuracyFormatSettings | GroundingSettings
"""Any reward config, told apart by `name`; a data set's settings say which one it takes."""
