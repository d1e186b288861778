"""What a data-set config holds (`experiments/conf/dataset/*.yaml`). Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eval.rewards.settings import RewardSettings


@dataclass(frozen=True)
class LaptopGeometrySizes:
    """Questions per split."""

    train: int
    selection: int
    validation: int
    out_of_domain: int


@dataclass(frozen=True)
class LaptopGeometryShares:
    """Shares of each family's exercises (sets of given numbers), in [0, 1].

    selection + validation leave the rest to train; out_of_domain leaves the rest to the policy's warm-up.
    """

    selection: float
    validation: float
    out_of_domain: float

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if not 0.0 < share < 1.0:
                raise ValueError(f"splits.number_shares.{name} = {share} is not between 0 and 1")
        if self.selection + self.validation >= 1.0:
            raise ValueError(
                f"splits.number_shares.selection = {self.selection} and validation = {self.validation} "
                "leave nothing to train on; they must sum to less than 1"
            )


@dataclass(frozen=True)
class LaptopGeometrySplits:
    """How the problems are split; the part of the data-set config that a warmed-up policy depends on."""

    seed: int
    sizes: LaptopGeometrySizes
    number_shares: LaptopGeometryShares

    @classmethod
    def from_mapping(cls, splits: Mapping[str, Any]) -> LaptopGeometrySplits:
        """From the `splits` section of a config. Raises TypeError for a missing or unknown key."""
        sections = dict(splits)
        sections["sizes"] = LaptopGeometrySizes(**splits["sizes"])
        sections["number_shares"] = LaptopGeometryShares(**splits["number_shares"])
        return cls(**sections)


@dataclass(frozen=True)
class LaptopGeometrySettings:
    """`source` names the module in `eval.datasets.DATASETS`; the `*_split` fields say what training uses."""

    name: str
    label: str
    source: Literal["laptop_geometry"]
    splits: LaptopGeometrySplits
    train_split: str
    validation_split: str
    reward: RewardSettings


DatasetSettings = LaptopGeometrySettings
"""Any data-set config; a union, told apart by `source`, once there are several."""
