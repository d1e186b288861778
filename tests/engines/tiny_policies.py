"""Random-weight policies of several architectures, small enough for a test, with a word-level tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from fastrl.engines.reference.policy import Policy, policy_of
from fastrl.rewards import Reward
from fastrl.rollouts import Question

WORDS = [*"abcdefgh", *"0123456789", "+", "-", "="]
VOCABULARY = {"<pad>": 0, "<eos>": 1, **{word: i + 2 for i, word in enumerate(WORDS)}}

_SHAPE: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
    "initializer_range": 0.3,
}


def tiny_model(architecture: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    if architecture == "llama":
        return LlamaForCausalLM(LlamaConfig(**_SHAPE, num_key_value_heads=4, tie_word_embeddings=True))
    if architecture == "llama-gqa":
        scaling = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1000.0}
        config = LlamaConfig(
            **_SHAPE,
            num_key_value_heads=2,
            head_dim=6,
            attention_bias=True,
            mlp_bias=True,
            tie_word_embeddings=False,
            rope_parameters=scaling,
        )
        return _with_random_biases(LlamaForCausalLM(config))
    if architecture == "qwen2":
        return _with_random_biases(Qwen2ForCausalLM(Qwen2Config(**_SHAPE, num_key_value_heads=2)))
    if architecture == "qwen2-sliding":
        config = Qwen2Config(
            **_SHAPE, num_key_value_heads=2, use_sliding_window=True, sliding_window=4, max_window_layers=1
        )
        return _with_random_biases(Qwen2ForCausalLM(config))
    if architecture == "gpt2":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(VOCABULARY),
                n_embd=16,
                n_layer=2,
                n_head=2,
                n_positions=64,
                bos_token_id=None,
                eos_token_id=1,
                initializer_range=0.3,
            )
        )
    if architecture == "gpt-neox":
        return GPTNeoXForCausalLM(GPTNeoXConfig(**_SHAPE))
    if architecture == "gemma2":
        config = Gemma2Config(
            **_SHAPE, num_key_value_heads=2, head_dim=4, final_logit_softcapping=2.0, sliding_window=64
        )
        return Gemma2ForCausalLM(config)
    raise ValueError(architecture)


ARCHITECTURES = ["llama", "llama-gqa", "qwen2", "qwen2-sliding", "gpt2", "gpt-neox", "gemma2"]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def tiny_policy(architecture: str, seed: int = 0) -> Policy:
    return policy_of(tiny_model(architecture, seed), tiny_tokenizer())


def save_tiny_policy(folder: Path, architecture: str = "llama", seed: int = 0) -> Path:
    tiny_model(architecture, seed).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def tiny_questions(count: int, name: str = "q") -> list[Question]:
    return [Question(f"{name}{i}", f"{i // 10 % 10} + {i % 10} =", str(i % 10)) for i in range(count)]


def letter_reward(questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
    """Right if "a" is in the response, well formed if "b" is: rewards of a random policy vary."""
    rewards = []
    for response in responses:
        accuracy, form = float("a" in response), float("b" in response)
        rewards.append(Reward(total=accuracy + 0.5 * form, accuracy=accuracy, format=form))
    return rewards


def _with_random_biases(model: Any) -> Any:
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return model
