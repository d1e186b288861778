"""A tiny random Qwen2.5-VL with a byte-level tokenizer and a processor without torchvision."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from fastrl.engines.reference.qwen_processor import QwenImageProcessor

SPECIAL = (
    "<|endoftext|>",
    "<|im_end|>",
    "<|im_start|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"
)
POSITIONS = 4096


def build_tiny_vision_policy(folder: Path, seed: int = 0) -> Path:
    """Save one of about 70,000 parameters that reads images of up to 56 x 56 pixels, larger ones shrunk."""
    torch.manual_seed(seed)
    bytes_alone = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokens = Tokenizer(models.BPE(vocab=bytes_alone, merges=[]))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokens.decoder = decoders.ByteLevel()
    tokens.add_special_tokens(list(SPECIAL))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL[2:]),
        padding_side="left",
        model_max_length=POSITIONS,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": POSITIONS,
        "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0},
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        "tie_word_embeddings": True,
        "initializer_range": 0.1,
    }
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": 32,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 1,
        "window_size": 112,
        "fullatt_block_indexes": [0],
        "in_channels": 3,
        "initializer_range": 0.1,
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    image_processor = Qwen2VLImageProcessorPil(
        patch_size=14, merge_size=2, temporal_patch_size=1, min_pixels=28 * 28, max_pixels=56 * 56
    )
    QwenImageProcessor(image_processor, tokenizer, CHAT_TEMPLATE).save_pretrained(folder)
    _name_the_stock_processor(folder)
    return folder


def _name_the_stock_processor(folder: Path) -> None:
    """As published checkpoints do, so that lm-eval alone can load this one where torchvision is installed."""
    for name in ("processor_config.json", "tokenizer_config.json"):
        path = folder / name
        config = json.loads(path.read_text("utf-8")) | {"processor_class": "Qwen2_5_VLProcessor"}
        path.write_text(json.dumps(config), "utf-8")
    video = {"video_processor_type": "Qwen2VLVideoProcessor", "patch_size": 14, "merge_size": 2}
    video |= {"temporal_patch_size": 1}
    (folder / "video_preprocessor_config.json").write_text(json.dumps(video), "utf-8")
