"""What a training set's config holds (`experiments/conf/dataset/*.yaml`): where it comes from and its sizes.

Standard library only. `source` names the module in `eval.preparation.PREPARATIONS`; `root` is the folder
that the prepared set is trained from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval.rewards.settings import BenchmarkAccuracyFormatSettings, GroundingSettings


@dataclass(frozen=True)
class HubFiles:
    """Files of a set on the Hugging Face hub.

    repository, revision: the set's name and a commit or branch of it. files: patterns of paths in it,
    alternatives, best first: the first that matches anything gives the files, in order of their names.
    """

    repository: str
    revision: str
    files: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("files is empty; name at least one pattern")


@dataclass(frozen=True)
class CountedHubFiles(HubFiles):
    """Files that make one split, which has `rows` questions."""

    rows: int


@dataclass(frozen=True)
class DiagramQuestionsSettings:
    """Questions with diagrams, in the splits of their authors (Geometry3K, GeoQA8K-R1V).

    instruction: what follows each problem in a prompt; it asks for the form that the reward checks.
    """

    name: str
    label: str
    source: Literal["geometry3k", "geoqa8k_r1v"]
    root: str
    licence: str
    splits: dict[str, CountedHubFiles]
    instruction: str
    train_split: str
    validation_split: str
    reward: BenchmarkAccuracyFormatSettings

    def __post_init__(self) -> None:
        _check_splits(self.splits, self.train_split, self.validation_split)


@dataclass(frozen=True)
class MathSizes:
    """Questions per split."""

    train: int
    test: int


@dataclass(frozen=True)
class MathSettings:
    """MATH: 12,500 problems, split as its authors do (`official`) or drawn anew with a seed (`released`).

    official: the files of the authors' train and test halves; sizes: questions per split, by `split`.
    instruction: what follows each problem in a prompt; it asks for the form that the reward checks.
    """

    name: str
    label: str
    source: Literal["math"]
    root: str
    licence: str
    split: Literal["released", "official"]
    seed: int
    sizes: dict[Literal["released", "official"], MathSizes]
    official: dict[Literal["train", "test"], HubFiles]
    instruction: str
    train_split: str
    validation_split: str
    reward: BenchmarkAccuracyFormatSettings

    def __post_init__(self) -> None:
        _check_splits({"train": 0, "test": 0}, self.train_split, self.validation_split)
        if self.split not in self.sizes:
            raise ValueError(f"sizes has no entry for split = {self.split}; it has {', '.join(self.sizes)}")
        if set(self.official) != {"train", "test"}:
            raise ValueError(f"official names {', '.join(self.official)}; it must name train and test")


@dataclass(frozen=True)
class Screenshots:
    """An annotation file and what holds its screenshots.

    images: paths in the set: a folder, a zip archive, or a pattern of archives; the parts of a split archive
    (`..._aa`, `..._ab`) are read as one.
    """

    annotations: str
    images: tuple[str, ...]


@dataclass(frozen=True)
class OsAtlasSettings:
    """OS-Atlas: elements of screenshots, `sizes` of them drawn with a seed.

    scale: gold boxes and the prompt's are whole numbers from 0 to `scale`, shares of the screenshot's width
    and height. prompt: text around `{instruction}` and `{scale}`, with one `<image>`.
    """

    name: str
    label: str
    source: Literal["os_atlas"]
    root: str
    licence: str
    repository: str
    revision: str
    parts: dict[str, Screenshots]
    seed: int
    sizes: dict[str, int]
    scale: int
    prompt: str
    train_split: str
    validation_split: str
    reward: GroundingSettings

    def __post_init__(self) -> None:
        _check_splits(self.sizes, self.train_split, self.validation_split)
        if self.scale < 1:
            raise ValueError(f"scale = {self.scale} must be at least 1")
        if self.prompt.count("<image>") != 1 or "{instruction}" not in self.prompt:
            raise ValueError("prompt must hold one <image> and {instruction}")
        if not self.parts:
            raise ValueError("parts is empty; name at least one annotation file")


PreparationSettings = DiagramQuestionsSettings | MathSettings | OsAtlasSettings
"""The config of any set that `fastrl data prepare` writes, told apart by `source`."""

SETTINGS: dict[str, type[PreparationSettings]] = {
    "geometry3k": DiagramQuestionsSettings,
    "geoqa8k_r1v": DiagramQuestionsSettings,
    "math": MathSettings,
    "os_atlas": OsAtlasSettings,
}
"""`source` -> the settings that its config is checked against."""


def _check_splits(splits: dict[str, int] | dict[str, CountedHubFiles], train: str, validation: str) -> None:
    for field, split in (("train_split", train), ("validation_split", validation)):
        if split not in splits:
            raise ValueError(f"{field} = {split} is none of the splits {', '.join(splits)}")
