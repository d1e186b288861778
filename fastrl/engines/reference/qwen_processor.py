"""Qwen2-VL's and Qwen2.5-VL's processor for texts with images, where torchvision is not installed.

transformers' own needs torchvision for videos, and refuses to load without it.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, ClassVar

from transformers import AutoTokenizer, ProcessorMixin, Qwen2_5_VLProcessor

_MODEL_TYPES = ("qwen2_vl", "qwen2_5_vl")
_STOCK = "Qwen2_5_VLProcessor"


class QwenImageProcessor(Qwen2_5_VLProcessor):  # type: ignore[misc]
    """The same texts, placeholders and pixels; no videos."""

    # transformers 4 checks a processor's parts against these.
    attributes: ClassVar[list[str]] = ["image_processor", "tokenizer"]
    tokenizer_class = "AutoTokenizer"

    def __init__(
        self, image_processor: Any = None, tokenizer: Any = None, chat_template: str | None = None, **_: Any
    ) -> None:
        self.image_token = "<|image_pad|>"
        self.video_token = "<|video_pad|>"
        self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
        self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **options: Any) -> Any:
        """Files that transformers' own processor loads too, where torchvision is installed."""
        written = super().save_pretrained(save_directory, push_to_hub, **options)
        folder = Path(save_directory)
        for name in ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json"):
            path = folder / name
            if not path.is_file():  # versions of transformers differ in which they write
                continue
            config = json.loads(path.read_text("utf-8")) | {"processor_class": _STOCK}
            path.write_text(json.dumps(config, indent=2, ensure_ascii=False), "utf-8")
        video = {
            "video_processor_type": "Qwen2VLVideoProcessor",
            "patch_size": self.image_processor.patch_size,
            "merge_size": self.image_processor.merge_size,
            "temporal_patch_size": self.image_processor.temporal_patch_size,
        }
        (folder / "video_preprocessor_config.json").write_text(json.dumps(video, indent=2), "utf-8")
        return written


def needs_qwen_processor(checkpoint: Path) -> bool:
    """Whether a checkpoint's own processor cannot be loaded here, and this one stands in for it."""
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    return stands_in_for(config.get("model_type"))


def stands_in_for(model_type: str | None) -> bool:
    """Whether this processor stands in for that of a type of model here."""
    return model_type in _MODEL_TYPES and importlib.util.find_spec("torchvision") is None


def load_qwen_processor(checkpoint: Path | str) -> QwenImageProcessor:
    """From a checkpoint folder that `save_pretrained` wrote. Raises OSError for a file that is missing."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    template = Path(checkpoint) / "chat_template.jinja"
    return QwenImageProcessor(
        image_processor=_image_processor_class().from_pretrained(checkpoint),
        tokenizer=tokenizer,
        chat_template=template.read_text("utf-8") if template.is_file() else tokenizer.chat_template,
    )


def _image_processor_class() -> Any:
    """The one that works on PIL images: transformers 4, which EasyR1 pins, has it by another name."""
    try:
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    except ImportError:
        from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

        return Qwen2VLImageProcessor
    return Qwen2VLImageProcessorPil
