"""A policy: a Hugging Face causal language model with its tokenizer, and prompts in the form it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from fastrl.rollouts import Question


class PolicyError(RuntimeError):
    """A policy folder that cannot be used, or a prompt that does not fit the policy."""


@dataclass(frozen=True)
class Policy:
    """`model` in evaluation mode (dropout would make the first update's ratio differ from 1), on `device`.

    eos_ids: the tokens that end a response. pad_id: fills padding; never attended to and never in a loss.
    """

    model: Any
    tokenizer: Any
    eos_ids: tuple[int, ...]
    pad_id: int
    device: torch.device


def load_policy(folder: Path | str, device: str, dtype: str) -> Policy:
    """Load a Hugging Face folder. `dtype` is a torch name ("float32", "bfloat16").

    PolicyError if the folder cannot be loaded, if the tokenizer names no end-of-sequence token, or if the
    tokenizer knows tokens that the model does not.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"cannot load a policy from {folder}: {error}; give a folder (or hub name) that AutoTokenizer "
            "and AutoModelForCausalLM can load"
        ) from error
    return policy_of(model.to(device), tokenizer)


def policy_of(model: Any, tokenizer: Any) -> Policy:
    """Wrap a loaded model and tokenizer; see `load_policy` for the errors."""
    configured = model.generation_config.eos_token_id if model.generation_config is not None else None
    ends = [*configured] if isinstance(configured, list | tuple) else [configured]
    eos_ids: set[int] = {token for token in [*ends, tokenizer.eos_token_id] if token is not None}
    if not eos_ids:
        raise PolicyError("the tokenizer has no eos_token, so a response could never end; set one")
    vocabulary = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > vocabulary:
        raise PolicyError(
            f"the tokenizer has {len(tokenizer)} tokens, the model embeds {vocabulary}; they do not belong "
            "together"
        )
    pad_id: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(eos_ids)
    device = model.get_input_embeddings().weight.device
    return Policy(model.eval(), tokenizer, tuple(sorted(eos_ids)), pad_id, device)


def encode_prompts(tokenizer: Any, questions: Sequence[Question], max_tokens: int) -> list[list[int]]:
    """Token ids of each question's prompt, with the special tokens that the tokenizer adds by itself.

    PolicyError naming the question if a prompt is empty or longer than `max_tokens`: a cut question would be
    another question.
    """
    if not questions:
        return []
    prompts: list[list[int]] = tokenizer([question.prompt for question in questions])["input_ids"]
    for question, prompt in zip(questions, prompts, strict=True):
        if not prompt:
            raise PolicyError(f"the prompt of question {question.id!r} has no tokens: {question.prompt!r}")
        if len(prompt) > max_tokens:
            raise PolicyError(
                f"the prompt of question {question.id!r} has {len(prompt)} tokens, more than "
                f"max_prompt_tokens={max_tokens}; raise that setting or leave the question out"
            )
    return prompts


def check_prompts(
    policy: Policy, questions: Sequence[Question], max_prompt_tokens: int, max_response_tokens: int
) -> None:
    """PolicyError, naming the question, if `encode_prompts` refuses a prompt or the model has no positions
    for it and a whole response."""
    positions = getattr(policy.model.config, "max_position_embeddings", None)
    prompts = encode_prompts(policy.tokenizer, questions, max_prompt_tokens)
    for question, prompt in zip(questions, prompts, strict=True):
        if positions is not None and len(prompt) + max_response_tokens > positions:
            raise PolicyError(
                f"the prompt of question {question.id!r} has {len(prompt)} tokens; with "
                f"max_response_tokens={max_response_tokens} that is more than the {positions} positions of "
                "the model; lower that setting or leave the question out"
            )


def left_padded(prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(B, P) int64 token ids and mask, padded on the left so that every prompt ends in the last column."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    mask = torch.arange(width) >= width - lengths[:, None]
    return ids.to(device), mask.long().to(device)
