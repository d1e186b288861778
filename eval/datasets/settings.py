"""What a data-set config holds (`experiments/conf/dataset/*.yaml`). Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eval.preparation.settings import SETTINGS, PreparationSettings
from eval.rewards.settings import BoxedAccuracyFormatSettings


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
    reward: BoxedAccuracyFormatSettings


@dataclass(frozen=True)
class LaptopFiguresSettings:
    """Problems in figures. root: the folder under which the set is kept, made when it is missing.

    instruction: what follows each problem in a prompt, "" for nothing.
    """

    name: str
    label: str
    source: Literal["laptop_figures"]
    root: str
    licence: str
    splits: LaptopGeometrySplits
    instruction: str
    train_split: str
    validation_split: str
    reward: BoxedAccuracyFormatSettings


@dataclass(frozen=True)
class RecordFiles:
    """The official files of one split.

    files: patterns of paths in the data folder, alternatives, best first; all files that match the first one
    that matches anything are the split, in the order of their names. rows: records in all, None when any
    number will do. sha256: digests of files by their name, where they are known; None to check none.
    """

    files: tuple[str, ...]
    rows: int | None
    sha256: dict[str, str] | None

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("files is empty; name at least one pattern")
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"rows = {self.rows} must be at least 1, or null for any number")


@dataclass(frozen=True)
class PublicSettings:
    """A public benchmark's data: a set on the Hugging Face hub, or a local folder of the same files.

    protocol: a name in `eval.protocols.PROTOCOLS`. hub, revision: the set's name (None when it is on no hub)
    and a commit or branch of it. root: the local folder, instead of the hub; it holds the files, or a folder
    named `folder` with them.
    """

    name: str
    label: str
    source: Literal["public"]
    protocol: str
    hub: str | None
    revision: str
    root: str | None
    folder: str
    splits: dict[str, RecordFiles]

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any]) -> PublicSettings:
        """From a plain config. Raises TypeError for a missing or unknown key."""
        sections = dict(config)
        sections["splits"] = {
            name: RecordFiles(**{**split, "files": tuple(split["files"])})
            for name, split in config["splits"].items()
        }
        return cls(**sections)


PREPARED_SETTINGS: dict[str, type[PreparationSettings] | type[LaptopFiguresSettings]] = {
    **SETTINGS,
    "laptop_figures": LaptopFiguresSettings,
}
"""The sets that are kept as parquet files, by `source`."""

DatasetSettings = LaptopGeometrySettings | LaptopFiguresSettings | PreparationSettings
"""Any data-set config that training reads, told apart by `source`."""

BenchmarkDataSettings = LaptopGeometrySettings | LaptopFiguresSettings | PublicSettings
"""Any data-set config of a benchmark, told apart by `source`."""
