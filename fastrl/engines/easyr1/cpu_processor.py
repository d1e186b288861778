"""A policy's processor where torchvision may be missing, without which transformers loads none of Qwen's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoConfig
from verl.utils.tokenizer import get_processor

from fastrl.engines.reference.qwen_processor import load_qwen_processor, stands_in_for


def cpu_processor(policy: str, chat_template: str | None) -> Any:
    """EasyR1's processor of a policy, or this project's own for it; None for a policy that reads text alone.

    The own one makes the same tokens and pixels, see `qwen_processor`. policy: a folder or hub name.
    chat_template: a file with a template in place of the policy's own, or None.
    """
    if not stands_in_for(AutoConfig.from_pretrained(policy).model_type):
        return get_processor(policy, override_chat_template=chat_template, use_fast=True)
    processor = load_qwen_processor(policy)
    if chat_template is not None:
        processor.chat_template = Path(chat_template).read_text(encoding="utf-8")
    return processor
