"""A Qwen2.5-VL of any size from scratch: its configs, its chat template and its folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
)

from experiments.policies.plain_sampling import plain_sampling
from experiments.policies.settings import QwenVisionSizes
from experiments.policies.tokenizer import SpecialTokens

PATCH, MERGE = 14, 2
"""Pixels of a patch's side, and patches of a token's side."""

IMAGE_MEAN, IMAGE_STD = 1.0, 0.5
"""Taken from a colour's share of 255, and its divisor: white paper is nought, so that ink stands out."""

VISION_START, VISION_END, IMAGE, VIDEO = (
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
ASSISTANT = "<|im_start|>"
SPECIAL = SpecialTokens(
    pad="<|endoftext|>",
    eos="<|im_end|>",
    unknown="<unk>",
    others=(ASSISTANT, VISION_START, VISION_END, IMAGE, VIDEO),
)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)
"""What a message says, images in their places, then `<|im_start|>` and the answer: short, for a tiny one."""


def qwen_vision_model(
    sizes: QwenVisionSizes, tokenizer: PreTrainedTokenizerFast
) -> Qwen2_5_VLForConditionalGeneration:
    """A model with random weights, drawn from torch's own random state."""
    text, tower = sizes.text, sizes.tower
    token = {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL.others}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": text.hidden,
            "intermediate_size": text.feed_forward,
            "num_hidden_layers": text.layers,
            "num_attention_heads": text.heads,
            "num_key_value_heads": text.heads,
            "max_position_embeddings": text.max_positions,
            "initializer_range": text.initializer_range,
            "rope_parameters": {
                "rope_type": "default",
                "mrope_section": _rotary_sections(text.hidden // text.heads // 2),
                "rope_theta": text.rope_theta,
            },
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": None,
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": tower.layers,
            "hidden_size": tower.hidden,
            "intermediate_size": tower.feed_forward,
            "num_heads": tower.heads,
            "out_hidden_size": text.hidden,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 1,
            "window_size": PATCH * MERGE * 4,
            "fullatt_block_indexes": list(range(tower.layers)),
            "in_channels": 3,
            "initializer_range": tower.initializer_range,
        },
        image_token_id=token[IMAGE],
        video_token_id=token[VIDEO],
        vision_start_token_id=token[VISION_START],
        vision_end_token_id=token[VISION_END],
        tie_word_embeddings=True,
    )
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config = plain_sampling(tokenizer)
    return model


def save_qwen_vision(
    model: Qwen2_5_VLForConditionalGeneration,
    tokenizer: PreTrainedTokenizerFast,
    max_pixels: int,
    folder: Path,
) -> None:
    """Save model, tokenizer, image processor and chat template, for transformers 4 and 5 alike.

    max_pixels: larger images are shrunk to so many. Without torchvision, transformers' AutoProcessor loads no
    Qwen processor, because of its videos; the image processor and the tokenizer load everywhere.
    """
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    tokenizer.chat_template = CHAT_TEMPLATE
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(
        patch_size=PATCH,
        merge_size=MERGE,
        temporal_patch_size=1,
        min_pixels=(PATCH * MERGE) ** 2,
        max_pixels=max_pixels,
        image_mean=[IMAGE_MEAN] * 3,
        image_std=[IMAGE_STD] * 3,
    ).save_pretrained(folder)
    _edit(folder / "config.json", _with_older_rotary_names)
    _edit(folder / "preprocessor_config.json", _with_older_processor_names)
    _edit(folder / "tokenizer_config.json", _with_older_tokenizer_names)


def _rotary_sections(half: int) -> list[int]:
    """How the rotary frequencies of a head are shared out among time, height and width."""
    spatial = 3 * half // 8
    return [half - 2 * spatial, spatial, spatial]


def _with_older_rotary_names(config: dict[str, Any]) -> dict[str, Any]:
    """transformers 5 writes `rope_parameters`; 4 reads the same from `rope_scaling` and `rope_theta`."""
    text = config["text_config"]
    rotary = text["rope_parameters"]
    older = {
        "rope_theta": rotary["rope_theta"],
        "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": rotary["mrope_section"]},
    }
    return config | {"text_config": text | older}


def _with_older_processor_names(config: dict[str, Any]) -> dict[str, Any]:
    """Names as published checkpoints have them, and sizes by those that alone count for transformers 4."""
    names = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}
    size = config["size"]
    return config | names | {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}


def _with_older_tokenizer_names(config: dict[str, Any]) -> dict[str, Any]:
    """transformers 5 reads what 4 wrote, not the other way round."""
    further = config.pop("extra_special_tokens", [])
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "processor_class": "Qwen2_5_VLProcessor"}
    return config | names | {"additional_special_tokens": further}


def _edit(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    content = change(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
