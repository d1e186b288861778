"""Qwen2-VL's and Qwen2.5-VL's processor for texts with images, where torchvision is not installed.

transformers' own needs torchvision for videos, and refuses to load without it.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, ProcessorMixin, Qwen2_5_VLProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

_MODEL_TYPES = ("qwen2_vl", "qwen2_5_vl")


class QwenImageProcessor(Qwen2_5_VLProcessor):  # type: ignore[misc]
    """The same texts, placeholders and pixels; no videos."""

    def __init__(
        self, image_processor: Any = None, tokenizer: Any = None, chat_template: str | None = None, **_: Any
    ) -> None:
        self.image_token = "<|image_pad|>"
        self.video_token = "<|video_pad|>"
        self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
        self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


def needs_qwen_processor(checkpoint: Path) -> bool:
    """Whether a checkpoint's own processor cannot be loaded here, and this one stands in for it."""
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    return config.get("model_type") in _MODEL_TYPES and importlib.util.find_spec("torchvision") is None


def load_qwen_processor(checkpoint: Path) -> QwenImageProcessor:
    """From a checkpoint folder that `save_pretrained` wrote. Raises OSError for a file that is missing."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    template = checkpoint / "chat_template.jinja"
    return QwenImageProcessor(
        image_processor=Qwen2VLImageProcessorPil.from_pretrained(checkpoint),
        tokenizer=tokenizer,
        chat_template=template.read_text("utf-8") if template.is_file() else tokenizer.chat_template,
    )
