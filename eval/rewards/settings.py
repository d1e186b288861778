"""What a reward config holds: the `reward` section of `experiments/conf/dataset/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BoxedAccuracyFormatSettings:
    """Fields of `eval.rewards.boxed_accuracy_format.BoxedAccuracyFormat`, and its name in `REWARDS`."""

    name: Literal["boxed_accuracy_format"]
    format_weight: float


RewardSettings = BoxedAccuracyFormatSettings
"""Any reward config; a union, told apart by `name`, once there are several."""
