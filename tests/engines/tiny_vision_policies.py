"""Random-weight image-text policies of three architectures, with their processors and chat templates."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from tiny_policies import VOCABULARY
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from fastrl.engines.reference.policy import Policy, load_policy
from fastrl.engines.reference.qwen_processor import QwenImageProcessor
from fastrl.rollouts import Question

VISION_ARCHITECTURES = ["qwen", "llava", "idefics"]
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
}
IMAGE_MARK = {"qwen": "<|vision_start|><|image_pad|><|vision_end|>", "llava": "<image>", "idefics": "<image>"}
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


def tiny_vision_tokenizer(architecture: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<pad>", "<eos>", *SEEING[architecture]])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        additional_special_tokens=SEEING[architecture],
        padding_side="left",
    )


def chat_template(architecture: str) -> str:
    return (
        "{% for m in messages %}{% for c in m['content'] %}{% if c['type'] == 'image' %}"
        + IMAGE_MARK[architecture]
        + "{% else %} {{ c['text'] }} {% endif %}{% endfor %}{% endfor %}"
        + "{% if add_generation_prompt %} ={% endif %}"
    )


def save_tiny_vision_policy(folder: Path, architecture: str = "qwen", seed: int = 0) -> Path:
    torch.manual_seed(seed)
    tokenizer = tiny_vision_tokenizer(architecture)
    model, processor = {"qwen": _qwen, "llava": _llava, "idefics": _idefics}[architecture](tokenizer)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    model.generation_config.eos_token_id = 1
    model.generation_config.pad_token_id = 0
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tiny_vision_policy(folder: Path, architecture: str = "qwen", seed: int = 0) -> Policy:
    return load_policy(save_tiny_vision_policy(folder, architecture, seed), "cpu", "float32")


def noise(seed: int, size: tuple[int, int] = (56, 56)) -> Image.Image:
    """An image of coloured blocks that a tower tells from others."""
    rng = random.Random(seed)
    blocks = Image.new("RGB", (4, 4))
    blocks.putdata([(rng.randrange(256), rng.randrange(256), rng.randrange(256)) for _ in range(16)])
    return blocks.resize(size, Image.Resampling.NEAREST)


SIZES = [(56, 56), (84, 56), (56, 112), (28, 28)]


def vision_questions(count: int, name: str = "q") -> list[Question]:
    """One image each, of several sizes, with texts of several lengths before and after it."""
    return [
        Question(
            f"{name}{i}",
            f"{'a ' * (i % 3)}<image> {i % 10} + {i // 10 % 10}",
            str(i % 10),
            images=(noise(len(name) * 1000 + i, SIZES[i % 4]),),
        )
        for i in range(count)
    ]


def mixed_questions() -> list[Question]:
    """Images of several sizes, two in one question, and a question without any."""
    return [
        *vision_questions(3),
        Question("two", "<image> a b <image> 3", "1", images=(noise(91, (84, 56)), noise(92, (56, 84)))),
        Question("none", "a b c 1 + 1", "2"),
    ]


def _qwen(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SEEING["qwen"]}
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "out_hidden_size": _TEXT["hidden_size"],
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 1,
        "window_size": 56,
        "fullatt_block_indexes": [1],
        "initializer_range": 0.2,
    }
    config = Qwen2_5_VLConfig(
        text_config={
            **_TEXT,
            "vocab_size": len(tokenizer),
            "rope_parameters": rope,
            "tie_word_embeddings": True,
        },
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )
    images = Qwen2VLImageProcessorPil(
        patch_size=14, merge_size=2, temporal_patch_size=1, min_pixels=28 * 28, max_pixels=112 * 112
    )
    model = Qwen2_5_VLForConditionalGeneration(config)
    return model, QwenImageProcessor(images, tokenizer, chat_template("qwen"))


def _llava(tokenizer: PreTrainedTokenizerFast) -> tuple[Any, Any]:
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    config = LlavaConfig(
        text_config={**_TEXT, "model_type": "llama", "vocab_size": len(tokenizer)},
        vision_config=vision,
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
    vision = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
        "initializer_range": 0.2,
    }
    config = Idefics3Config(
        text_config={**_TEXT, "model_type": "llama", "vocab_size": len(tokenizer)},
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, do_image_splitting=True
    )
    processor = Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=chat_template("idefics"))
    return Idefics3ForConditionalGeneration(config), processor
