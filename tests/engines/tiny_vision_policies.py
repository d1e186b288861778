"""Image-text policies of random weights, and questions with images for them."""

from __future__ import annotations

import random
from pathlib import Path

from PIL import Image
from tiny_vision_models import tiny_vision_model

from fastrl.engines.reference.policy import Policy, load_policy, policy_of
from fastrl.rollouts import Question

VISION_ARCHITECTURES = ["qwen", "llava", "idefics", "gemma"]
"""Those that can be saved and loaded here."""


def save_tiny_vision_policy(folder: Path, architecture: str = "qwen", seed: int = 0) -> Path:
    model, processor = tiny_vision_model(architecture, seed)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tiny_vision_policy(folder: Path, architecture: str = "qwen", seed: int = 0) -> Policy:
    """Saved and loaded, but for an architecture whose processor is not loaded without torchvision."""
    if architecture not in VISION_ARCHITECTURES:
        model, processor = tiny_vision_model(architecture, seed)
        return policy_of(model, processor.tokenizer, processor)
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
