"""A tiny Qwen2.5-VL of random weights, and questions about coloured blocks, prepared as this project does."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

from tiny_assets import REWARD, Assets, character_tokenizer

from eval.preparation.base import SourceQuestion
from eval.preparation.parquet_file import QuestionIds, write_questions

SIZES = ((56, 56), (84, 56), (56, 112), (28, 28))
"""Width and height of images in pixels, which a policy reads as 4, 6, 8 and 1 tokens."""

SEEING = {"max_prompt_tokens": 48}
"""What `tiny_cells.cell` trains on these questions with: images need room."""

_SPECIAL = [
    "<pad>",
    "<eos>",
    "<user>",
    "<assistant>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
_TEMPLATE = (
    "{% for message in messages %}<user>{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def build_vision_assets(folder: Path, swapped: bool = False) -> Assets:
    """24 questions to train on, of which three have two images, three have none and the others one.

    swapped: each image is that of another question of the same size; all else is the same.
    """
    policy = folder / "policy"
    _save_policy(policy)
    ids = QuestionIds("tiny")
    for name, count in (("train", 24), ("validation", 4)):
        questions = [_question(index, swapped) for index in range(count)]
        write_questions(folder / f"{name}.parquet", iter(questions), ids, has_images=True)
    (folder / "reward.py").write_text(REWARD)
    return Assets(policy, folder / "train.parquet", folder / "validation.parquet", folder / "reward.py")


def _question(index: int, swapped: bool) -> SourceQuestion:
    """The text names the question, so that a prompt tells which images belong to it."""
    count = {6: 2, 7: 0}.get(index % 8, 1)
    # Questions four apart have images of one size.
    drawn = (index + 4) % 24 if swapped else index
    images = tuple(_blocks(f"{drawn}/{place}", SIZES[index % 4]) for place in range(count))
    text = (
        f"say {index}?"
        if count == 0
        else f"{'a ' * (index % 3)}<image> say {index}?" + " <image>" * (count - 1)
    )
    return SourceQuestion(text, str(index % 5), "", images, f"question {index}")


def _blocks(seed: str, size: tuple[int, int]) -> bytes:
    """A PNG file of coloured blocks."""
    from PIL import Image

    rng = random.Random(seed)
    blocks = Image.frombytes("RGB", (4, 4), rng.randbytes(48)).resize(size, Image.Resampling.NEAREST)
    file = io.BytesIO()
    blocks.save(file, "PNG")
    return file.getvalue()


def _save_policy(folder: Path) -> None:
    import torch
    from transformers import GenerationConfig, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

    from fastrl.engines.reference.qwen_processor import QwenImageProcessor

    tokenizer = character_tokenizer(_SPECIAL)
    images = Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=112 * 112)
    QwenImageProcessor(images, tokenizer, _TEMPLATE).save_pretrained(folder)
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 512,
        "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": [2, 3, 3]},
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }
    tower = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 32,
        "window_size": 56,
        "fullatt_block_indexes": [1],
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=tower,
        tie_word_embeddings=True,
        **{
            f"{name}_token_id": tokenizer.convert_tokens_to_ids(token)
            for name, token in (
                ("image", "<|image_pad|>"),
                ("video", "<|video_pad|>"),
                ("vision_start", "<|vision_start|>"),
                ("vision_end", "<|vision_end|>"),
            )
        },
    )
    torch.manual_seed(0)
    model = Qwen2_5_VLForConditionalGeneration(config)
    for weights in model.model.visual.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.2)  # so large that responses depend on what it sees
    model.generation_config = GenerationConfig(eos_token_id=1, pad_token_id=0)
    model.save_pretrained(folder)
