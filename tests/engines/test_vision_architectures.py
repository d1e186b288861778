"""Image-text models that the engine does not read as they read themselves are refused, with the way out."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_policies import tiny_questions, tiny_tokenizer
from tiny_vision_models import chat_template, tiny_vision_model, tiny_vision_tokenizer
from tiny_vision_policies import mixed_questions, tiny_vision_policy
from transformers import (
    Blip2Config,
    Blip2ForConditionalGeneration,
    ChameleonConfig,
    ChameleonForConditionalGeneration,
    LlavaProcessor,
    PaliGemmaProcessor,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from fastrl.engines.reference.image_check import check_images
from fastrl.engines.reference.image_prompts import ImagePromptReader
from fastrl.engines.reference.logprobs import make_scorer
from fastrl.engines.reference.policy import Policy, load_policy, policy_of, read_prompts, with_tower
from fastrl.engines.reference.policy_error import PolicyError
from fastrl.engines.reference.sampler import sample

TEXT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": None,
}


def check(policy: Policy) -> None:
    assert policy.vision is not None
    check_images(policy, make_scorer(policy.model, policy.vision.features), mixed_questions())


def chameleon() -> Policy:
    """Its images are codes, which are embedded as text is."""
    torch.manual_seed(0)
    tokenizer = tiny_vision_tokenizer("llava")
    codes = {f"IMGIMG{letter}Z": 30 + number for number, letter in enumerate("ABCDEFGH")}
    config = ChameleonConfig(
        **TEXT,
        vocab_size=40,
        initializer_range=0.3,
        vq_config={
            "embed_dim": 8,
            "num_embeddings": 8,
            "latent_channels": 8,
            "resolution": 32,
            "base_channels": 32,
            "channel_multiplier": [1, 1],
            "num_res_blocks": 1,
        },
        vocabulary_map=tokenizer.get_vocab() | codes,
    )
    images = CLIPImageProcessorPil(size={"shortest_edge": 8}, crop_size={"height": 8, "width": 8})
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=2,
        vision_feature_select_strategy="full",
        chat_template=chat_template("llava"),
    )
    return policy_of(ChameleonForConditionalGeneration(config), tokenizer, processor)


def test_features_that_change_with_the_text_are_not_kept() -> None:
    policy = chameleon()
    check(with_tower(policy, frozen=False, cache_bytes=1 << 20))
    with pytest.raises(
        PolicyError, match=r"Chameleon.* makes of images .*; set engine.freeze_vision_tower=false"
    ):
        check(with_tower(policy, frozen=True, cache_bytes=1 << 20))


@pytest.mark.parametrize("architecture", ["qwen", "qwen3", "llava", "idefics", "gemma"])
def test_a_frozen_tower_may_be_kept(architecture: str, tmp_path: Path) -> None:
    policy = tiny_vision_policy(tmp_path / "policy", architecture)
    check(with_tower(policy, frozen=True, cache_bytes=1 << 20))


def test_a_model_that_cannot_do_without_an_image_is_refused() -> None:
    tokenizer = tiny_vision_tokenizer("llava")
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    text = {
        "model_type": "opt",
        "hidden_size": 32,
        "ffn_dim": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "vocab_size": len(tokenizer),
        "word_embed_proj_dim": 32,
    }
    config = Blip2Config(
        vision_config={**sizes, "image_size": 28, "patch_size": 14},
        qformer_config={**sizes, "encoder_hidden_size": 32},
        text_config=text,
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    _, processor = tiny_vision_model("llava")
    policy = policy_of(Blip2ForConditionalGeneration(config), tokenizer, processor)
    with pytest.raises(PolicyError, match=r"Blip2.* cannot be read here .*pixel_values.*engine=easyr1"):
        check(policy)


def test_a_response_that_begins_at_another_position_is_seen(tmp_path: Path) -> None:
    """The first token after a prompt does not tell."""

    class Late(ImagePromptReader):
        def _positions(self, *arguments: Any) -> Any:
            positions, following = super()._positions(*arguments)
            return positions, following + 3

    policy = tiny_vision_policy(tmp_path / "policy")
    assert policy.vision is not None
    late = Late(policy.model, policy.vision.processor, 0)
    vision = dataclasses.replace(policy.vision, reader=late)
    with pytest.raises(PolicyError, match=r"Qwen2_5_VL.* is not read right in sampling"):
        check(dataclasses.replace(policy, vision=vision))


def test_a_model_that_keeps_a_running_state_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    config = Qwen3_5TextConfig(
        **TEXT,
        vocab_size=len(tokenizer),
        head_dim=16,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
    )
    policy = policy_of(Qwen3_5ForCausalLM(config), tokenizer)
    prompts = read_prompts(policy, tiny_questions(2), 16)
    with pytest.raises(PolicyError, match=r"Qwen3_5.* keeps a LinearAttentionLayer .*engine=easyr1"):
        sample(policy, prompts, 2, max_tokens=3, temperature=1.0, batch=4, generator=torch.Generator())


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is not None, reason="torchvision is installed")
def test_a_processor_that_needs_a_package_is_refused_with_its_name(tmp_path: Path) -> None:
    model, processor = tiny_vision_model("qwen3")
    model.save_pretrained(tmp_path)
    processor.tokenizer.save_pretrained(tmp_path)
    processor.image_processor.save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match=r"requires the Torchvision .*; install what is missing"):
        load_policy(tmp_path, "cpu", "float32")


def test_a_processor_that_fails_names_the_question() -> None:
    """PaliGemma's counts on a token that begins a text."""
    model, _ = tiny_vision_model("llava")
    images = SiglipImageProcessorPil(size={"height": 56, "width": 56})
    images.image_seq_length = 16
    template = chat_template("llava")
    processor = PaliGemmaProcessor(images, tiny_vision_tokenizer("llava"), chat_template=template)
    with pytest.raises(PolicyError, match=r"cannot read question 'q0': can only concatenate str"):
        ImagePromptReader(model, processor, 0).read(mixed_questions()[0])
