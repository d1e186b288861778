"""A policy: a Hugging Face model, causal or image-text, its tokenizer, and prompts in the form it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from fastrl.engines.reference.image_features import ImageFeatures, vision_parameters
from fastrl.engines.reference.image_prompts import ImagePromptReader
from fastrl.engines.reference.policy_error import PolicyError as PolicyError
from fastrl.engines.reference.qwen_processor import load_qwen_processor, stands_in_for
from fastrl.rollouts import Question

_SAMPLED_CACHE = 256 << 20
"""Bytes of images and of features that a policy keeps which is only sampled from."""


@dataclass(frozen=True)
class Vision:
    """How an image-text policy reads questions, and what its vision tower makes of their images.

    folder: where the policy was loaded from, None if that is no folder on this machine.
    """

    folder: Path | None
    processor: Any
    reader: ImagePromptReader
    features: ImageFeatures


@dataclass(frozen=True)
class Policy:
    """`model` in evaluation mode (dropout would make the first update's ratio differ from 1), on `device`.

    eos_ids: the tokens that end a response. pad_id: fills padding; never attended to and never in a loss.
    vision: of an image-text model, None for others.
    """

    model: Any
    tokenizer: Any
    eos_ids: tuple[int, ...]
    pad_id: int
    device: torch.device
    vision: Vision | None = None


def load_policy(folder: Path | str, device: str, dtype: str) -> Policy:
    """Load a Hugging Face folder. `dtype` is a torch name ("float32", "bfloat16").

    A folder of an image-text model, with its processor, becomes a policy that sees.

    PolicyError if the folder cannot be loaded, if its processor needs a package that is not installed, if the
    tokenizer names no end-of-sequence token, or if it knows tokens that the model does not.
    """
    needed = "AutoTokenizer and AutoModelForCausalLM"
    try:
        config = AutoConfig.from_pretrained(folder)
        if _sees(config):
            needed = "AutoProcessor and AutoModelForImageTextToText"
            processor = _load_processor(folder, config.model_type)
            tokenizer = processor.tokenizer
            model = AutoModelForImageTextToText.from_pretrained(folder, dtype=getattr(torch, dtype))
        else:
            processor = None
            tokenizer = AutoTokenizer.from_pretrained(folder)
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    except ImportError as error:
        raise PolicyError(
            f"cannot load a policy from {folder}: {' '.join(str(error).split())}; install what is missing, "
            "or train it with engine=easyr1, in an environment that has it"
        ) from error
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"cannot load a policy from {folder}: {error}; give a folder (or hub name) that {needed} can load"
        ) from error
    return policy_of(model.to(device), tokenizer, processor, Path(folder) if Path(folder).is_dir() else None)


def _sees(config: Any) -> bool:
    """Whether a folder was saved from an image-text model."""
    saved = getattr(config, "architectures", None) or []
    return any(name in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values() for name in saved)


def _load_processor(folder: Path | str, model_type: str) -> Any:
    return load_qwen_processor(folder) if stands_in_for(model_type) else AutoProcessor.from_pretrained(folder)


def _vision_of(
    model: Any, processor: Any, folder: Path | None, *, constant: bool, cache_bytes: int
) -> Vision:
    """What a policy sees with; see `Vision` and `ImageFeatures` for the arguments."""
    return Vision(
        folder,
        processor,
        ImagePromptReader(model, processor, cache_bytes),
        ImageFeatures(model, constant, cache_bytes),
    )


def policy_of(model: Any, tokenizer: Any, processor: Any = None, folder: Path | None = None) -> Policy:
    """Wrap a loaded model and tokenizer, and an image-text model's processor; see `load_policy` for errors.

    What the model makes of images is kept as if it did not change, which `with_tower` revises.
    """
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
    vision = None
    if processor is not None:
        vision = _vision_of(model.eval(), processor, folder, constant=True, cache_bytes=_SAMPLED_CACHE)
    return Policy(model.eval(), tokenizer, tuple(sorted(eos_ids)), pad_id, device, vision)


def with_tower(policy: Policy, *, frozen: bool, cache_bytes: int) -> Policy:
    """An image-text policy with its vision tower frozen or trained; other policies as they are.

    Changes which of the model's parameters require a gradient. cache_bytes: see `ImageFeatures`.
    """
    if policy.vision is None:
        return policy
    for _, parameter in vision_parameters(policy.model):
        parameter.requires_grad_(not frozen)
    known = policy.vision
    vision = _vision_of(policy.model, known.processor, known.folder, constant=frozen, cache_bytes=cache_bytes)
    return dataclasses.replace(policy, vision=vision)


def read_prompts(policy: Policy, questions: Sequence[Question], max_tokens: int) -> Sequence[list[int]]:
    """Token ids of each question's prompt: with the special tokens that the tokenizer adds by itself, or, for
    an image-text policy, an `ImagePrompt` of one user's message in the chat template.

    PolicyError naming the question if a prompt is empty or longer than `max_tokens`, image tokens included (a
    cut question would be another question), or if its images do not fit its text or the policy.
    """
    if policy.vision is None:
        return encode_prompts(policy.tokenizer, questions, max_tokens)
    prompts = [policy.vision.reader.read(question) for question in questions]
    _check_lengths(questions, prompts, max_tokens)
    return prompts


def encode_prompts(tokenizer: Any, questions: Sequence[Question], max_tokens: int) -> list[list[int]]:
    """Token ids of each question's prompt, with the special tokens that the tokenizer adds by itself.

    PolicyError naming the question if a prompt is empty or longer than `max_tokens`, or has images.
    """
    if not questions:
        return []
    for question in questions:
        if question.images:
            raise PolicyError(
                f"question {question.id!r} has {len(question.images)} images, but the policy reads text "
                "alone; take an image-text model, or a data set without images"
            )
    prompts: list[list[int]] = tokenizer([question.prompt for question in questions])["input_ids"]
    _check_lengths(questions, prompts, max_tokens)
    return prompts


def _check_lengths(questions: Sequence[Question], prompts: Sequence[Sequence[int]], max_tokens: int) -> None:
    for question, prompt in zip(questions, prompts, strict=True):
        if not prompt:
            raise PolicyError(f"the prompt of question {question.id!r} has no tokens: {question.prompt!r}")
        if len(prompt) > max_tokens:
            raise PolicyError(
                f"the prompt of question {question.id!r} has {len(prompt)} tokens, more than "
                f"max_prompt_tokens={max_tokens}; raise that setting or leave the question out"
            )


def check_prompts(
    policy: Policy, questions: Sequence[Question], max_prompt_tokens: int, max_response_tokens: int
) -> None:
    """PolicyError, naming the question, if `read_prompts` refuses a prompt or the model has no positions
    for it and a whole response."""
    positions = getattr(policy.model.config.get_text_config(), "max_position_embeddings", None)
    at_once = max(1, len(questions)) if policy.vision is None else 1  # all images together may not fit
    for start in range(0, len(questions), at_once):
        part = questions[start : start + at_once]
        _check_room(part, read_prompts(policy, part, max_prompt_tokens), max_response_tokens, positions)


def _check_room(
    questions: Sequence[Question],
    prompts: Sequence[Sequence[int]],
    max_response_tokens: int,
    positions: int | None,
) -> None:
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
