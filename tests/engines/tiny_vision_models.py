"""Random-weight image-text models of several architectures, with their processors and chat templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tiny_policies import VOCABULARY
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3Processor,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from fastrl.engines.reference.qwen_processor import QwenImageProcessor

SEEING = {
    "qwen": ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"],
    "llava": ["<image>"],
    "idefics": [
        "<fake_token_around_image>",
        "<image>",
        "<end_of_utterance>",
        "<global-img>",
        *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)),
    ],
    "gemma": ["<start_of_image>", "<end_of_image>", "<image_soft_token>"],
}
SEEING["qwen3"] = SEEING["qwen"]
IMAGE_MARK = {
    **dict.fromkeys(("qwen", "qwen3"), "<|vision_start|><|image_pad|><|vision_end|>"),
    **dict.fromkeys(("llava", "idefics"), "<image>"),
    "gemma": "<start_of_image>",
}
_NAMED = {"gemma": dict(zip(("boi_token", "eoi_token", "image_token"), SEEING["gemma"], strict=True))}
_TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
    "initializer_range": 0.3,
}
_TOWER = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 14,
}


def tiny_vision_tokenizer(architecture: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<pad>", "<eos>", *SEEING[architecture]])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        additional_special_tokens=SEEING[architecture],
        **({"extra_special_tokens": _NAMED[architecture]} if architecture in _NAMED else {}),
        padding_side="left",
    )


def chat_template(architecture: str) -> str:
    return (
        "{% for m in messages %}{% for c in m['content'] %}{% if c['type'] == 'image' %}"
        + IMAGE_MARK[architecture]
        + "{% else %} {{ c['text'] }} {% endif %}{% endfor %}{% endfor %}"
        + "{% if add_generation_prompt %} ={% endif %}"
    )


def _qwen(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    windows = {"window_size": 56, "fullatt_block_indexes": [1]}
    config = _qwen_config(Qwen2_5_VLConfig, tokenizer, {}, windows)
    return Qwen2_5_VLForConditionalGeneration(config), _qwen_processor(tokenizer, "qwen")


def _qwen3(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    """Whose tower gives features for deeper layers too."""
    deeper = {"num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
    config = _qwen_config(Qwen3VLConfig, tokenizer, {"head_dim": 16}, deeper)
    return Qwen3VLForConditionalGeneration(config), _qwen_processor(tokenizer, "qwen3")


def _qwen_config(
    kind: Any, tokenizer: PreTrainedTokenizerFast, text: dict[str, Any], vision: dict[str, Any]
) -> Any:
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SEEING["qwen"]}
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    tower = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "out_hidden_size": _TEXT["hidden_size"],
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 1,
        "initializer_range": 0.2,
    }
    return kind(
        text_config={
            **_TEXT,
            **text,
            "vocab_size": len(tokenizer),
            "rope_parameters": rope,
            "tie_word_embeddings": True,
        },
        vision_config={**tower, **vision},
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )


def _qwen_processor(tokenizer: PreTrainedTokenizerFast, architecture: str) -> QwenImageProcessor:
    images = Qwen2VLImageProcessorPil(
        patch_size=14, merge_size=2, temporal_patch_size=1, min_pixels=28 * 28, max_pixels=112 * 112
    )
    return QwenImageProcessor(images, tokenizer, chat_template(architecture))


def _llava(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    config = LlavaConfig(
        text_config={**_TEXT, "model_type": "llama", "vocab_size": len(tokenizer)},
        vision_config={**_TOWER, "model_type": "clip_vision_model", "image_size": 28},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    images = CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=chat_template("llava"),
    )
    return LlavaForConditionalGeneration(config), processor


def _idefics(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    config = Idefics3Config(
        text_config={**_TEXT, "model_type": "llama", "vocab_size": len(tokenizer)},
        vision_config={**_TOWER, "image_size": 56, "initializer_range": 0.2},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, do_image_splitting=True
    )
    processor = Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=chat_template("idefics"))
    return Idefics3ForConditionalGeneration(config), processor


def _gemma(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    """Whose image tokens see each other both ways, and whose tower gives one tensor for all images."""
    start, end, soft = map(tokenizer.convert_tokens_to_ids, SEEING["gemma"])
    config = Gemma3Config(
        text_config={
            **_TEXT,
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "vocab_size": len(tokenizer),
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        vision_config={**_TOWER, "image_size": 56},
        mm_tokens_per_image=4,
        boi_token_id=start,
        eoi_token_id=end,
        image_token_id=soft,
        initializer_range=0.2,
    )
    images = Gemma3ImageProcessorPil(size={"height": 56, "width": 56})
    processor = Gemma3Processor(images, tokenizer, chat_template("gemma"), image_seq_length=4)
    model = Gemma3ForConditionalGeneration(config)
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight, std=0.3)  # else 0
    return model, processor


BUILDERS: dict[str, Callable[[PreTrainedTokenizerFast], tuple[Any, Any]]] = {
    "qwen": _qwen,
    "qwen3": _qwen3,
    "llava": _llava,
    "idefics": _idefics,
    "gemma": _gemma,
}


def tiny_vision_model(architecture: str, seed: int = 0) -> tuple[Any, Any]:
    """A model and its processor."""
    torch.manual_seed(seed)
    model, processor = BUILDERS[architecture](tiny_vision_tokenizer(architecture))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    model.generation_config.eos_token_id = 1
    model.generation_config.pad_token_id = 0
    return model, processor
