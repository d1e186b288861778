"""What a model config holds (`experiments/conf/model/*.yaml`). Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from eval.datasets.laptop_geometry.teacher import TeacherShares


@dataclass(frozen=True)
class HubModel:
    """A policy that exists: `path` is a name on the Hugging Face hub or a folder."""

    name: str
    label: str
    kind: Literal["hub"]
    path: str


@dataclass(frozen=True)
class LlamaSizes:
    """Sizes of a Llama-type model with tied embeddings; `feed_forward` is the width of the gated layer."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    max_positions: int
    initializer_range: float
    rope_theta: float


@dataclass(frozen=True)
class TokenizerSettings:
    """Byte-pair encoding over phrases: `corpus_size` teacher responses to learn from, drawn with `seed`."""

    vocab_size: int
    max_token_length: int
    corpus_size: int
    seed: int


@dataclass(frozen=True)
class SftSettings:
    """Warm-up on the teacher's responses with AdamW: `warmup_steps` up to `lr`, then linear to `final_lr`.

    out_of_domain_share: share of the examples that come from the out-of-domain families.
    """

    seed: int
    steps: int
    batch_size: int
    lr: float
    final_lr: float
    warmup_steps: int
    betas: tuple[float, float]
    weight_decay: float
    max_grad_norm: float
    out_of_domain_share: float
    teacher: TeacherShares


@dataclass(frozen=True)
class LaptopLlama:
    """A tiny policy that is built here, once, by `experiments.policies.laptop_llama`.

    warm_up_set: the `source` of the data it is warmed up on, and knows the words of. engine: the embedded
    engine's config for it.
    """

    warm_up_set: ClassVar[str] = "laptop_geometry"
    engine: ClassVar[str] = "reference"

    name: str
    label: str
    kind: Literal["built"]
    builder: Literal["laptop_llama"]
    architecture: LlamaSizes
    tokenizer: TokenizerSettings
    sft: SftSettings

    @classmethod
    def from_mapping(cls, model: Mapping[str, Any]) -> LaptopLlama:
        """From a model config. Raises TypeError for a missing or unknown key."""
        sft = dict(model["sft"])
        sft["betas"] = tuple(sft["betas"])
        sft["teacher"] = TeacherShares(**sft["teacher"])
        sections = dict(model)
        sections["architecture"] = LlamaSizes(**model["architecture"])
        sections["tokenizer"] = TokenizerSettings(**model["tokenizer"])
        sections["sft"] = SftSettings(**sft)
        return cls(**sections)


@dataclass(frozen=True)
class TowerSizes:
    """Sizes of a vision tower; `feed_forward` is the width of the gated layer."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    initializer_range: float


@dataclass(frozen=True)
class QwenVisionSizes:
    """Sizes of a Qwen2.5-VL with tied embeddings: the model of texts, and the tower that reads images."""

    text: LlamaSizes
    tower: TowerSizes


@dataclass(frozen=True)
class VisionSftSettings(SftSettings):
    """Warm-up on figures: `caption_steps` steps in which the policy learns to say what stands in them, then
    the others, with the tower as it is by then, in which it learns to answer as the teacher does."""

    caption_steps: int


@dataclass(frozen=True)
class LaptopVision:
    """A tiny policy that sees, built once by `experiments.policies.laptop_vision`; see `LaptopLlama`."""

    warm_up_set: ClassVar[str] = "laptop_figures"
    engine: ClassVar[str] = "reference_vision"

    name: str
    label: str
    kind: Literal["built"]
    builder: Literal["laptop_vision"]
    architecture: QwenVisionSizes
    tokenizer: TokenizerSettings
    sft: VisionSftSettings

    @classmethod
    def from_mapping(cls, model: Mapping[str, Any]) -> LaptopVision:
        """From a model config. Raises TypeError for a missing or unknown key."""
        sizes, sft = model["architecture"], dict(model["sft"])
        sft["betas"] = tuple(sft["betas"])
        sft["teacher"] = TeacherShares(**sft["teacher"])
        sections = dict(model)
        sections["architecture"] = QwenVisionSizes(LlamaSizes(**sizes["text"]), TowerSizes(**sizes["tower"]))
        sections["tokenizer"] = TokenizerSettings(**model["tokenizer"])
        sections["sft"] = VisionSftSettings(**sft)
        return cls(**sections)


BUILT_POLICIES: dict[str, type[LaptopLlama] | type[LaptopVision]] = {
    "laptop_llama": LaptopLlama,
    "laptop_vision": LaptopVision,
}
"""Policies that are built here, by `builder`."""

ModelSettings = HubModel | LaptopLlama | LaptopVision
"""Any model config, told apart by `kind` and, when built, by `builder`."""
