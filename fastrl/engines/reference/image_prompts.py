"""Prompts of image-text models: a user's message in the processor's chat template, with its images.

Everything that a model's own forward pass would work out from a batch, such as the three-dimensional
positions of Qwen's models, is worked out here for each prompt alone and put in place in the batch, so that
padding, the order of rows and what the model saw before make no difference.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Qwen2_5_VLModel

from fastrl.engines.reference.bounded_cache import BoundedCache
from fastrl.engines.reference.policy_error import PolicyError
from fastrl.rollouts import Question

PLACEHOLDER = "<image>"
_TOKEN_TYPES = ("mm_token_type_ids", "token_type_ids")


class ImagePrompt(list[int]):
    """The token ids of a prompt for an image-text model (P of them), and what else the model reads of it.

    key: equal for equal texts and images. pixels: the processor's tensors for the images, {} without any.
    image_tokens: how many of the ids stand for a piece of an image. token_types: (P,) int64 by the model's
    name for them. positions: (A, P) int64, A = 1, or 3 for models that place images in time, height and
    width. next_position: where the response begins, on every axis.
    """

    def __init__(
        self,
        tokens: Sequence[int],
        *,
        key: Hashable,
        pixels: dict[str, Tensor],
        image_tokens: int,
        token_types: dict[str, NDArray[np.int64]],
        positions: NDArray[np.int64],
        next_position: int,
    ) -> None:
        super().__init__(tokens)
        self.key = key
        self.pixels = pixels
        self.image_tokens = image_tokens
        self.token_types = token_types
        self.positions = positions
        self.next_position = next_position

    @property
    def bytes(self) -> int:
        """What it takes in memory, about."""
        tensors = sum(tensor.numel() * tensor.element_size() for tensor in self.pixels.values())
        return tensors + self.positions.nbytes + 40 * len(self)


@dataclass(frozen=True)
class PlacedPrompts:
    """B prompts in rows of S columns, each with what comes before it (padding) or behind it (its response).

    positions: (B, S) int64, or (3, B, S). next_positions: (B,), where each response begins. token_types:
    (B, S) by name, 0 outside the prompts. outputs: the images' features as the model's forward pass takes
    them, None when no prompt has any.
    """

    positions: Tensor
    next_positions: Tensor
    token_types: dict[str, Tensor]
    outputs: Any

    def forward_arguments(self) -> dict[str, Any]:
        """What a model's own forward pass takes besides ids, mask and positions."""
        return {
            **self.token_types,
            **({} if self.outputs is None else {"mm_encoder_outputs": {"image": self.outputs}}),
        }


def placed(
    prompts: Sequence[ImagePrompt], width: int, left_padded: bool, outputs: Any, device: torch.device
) -> PlacedPrompts:
    """Prompts at the end of `width` columns (`left_padded`), or at their start with room for responses."""
    axes = max(len(prompt.positions) for prompt in prompts)
    positions = np.zeros((axes, len(prompts), width), dtype=np.int64)
    names = prompts[0].token_types
    types = {name: np.zeros((len(prompts), width), dtype=np.int64) for name in names}
    for row, prompt in enumerate(prompts):
        start = width - len(prompt) if left_padded else 0
        end = start + len(prompt)
        positions[:, row, start:end] = prompt.positions
        positions[:, row, end:] = np.arange(prompt.next_position, prompt.next_position + width - end)
        for name in names:
            types[name][row, start:end] = prompt.token_types[name]
    moved = torch.from_numpy(positions).to(device)
    return PlacedPrompts(
        positions=moved if axes > 1 else moved[0],
        next_positions=torch.tensor([prompt.next_position for prompt in prompts], device=device),
        token_types={name: torch.from_numpy(values).to(device) for name, values in types.items()},
        outputs=outputs,
    )


def user_message(text: str) -> dict[str, Any]:
    """One user's message of texts and images by turns: an image at each `<image>`."""
    content: list[dict[str, str]] = []
    for number, part in enumerate(text.split(PLACEHOLDER)):
        if number:
            content.append({"type": "image"})
        if part:
            content.append({"type": "text", "text": part})
    return {"role": "user", "content": content}


class ImagePromptReader:
    """Reads questions as a model's processor and chat template have it; keeps what it read, up to a bound."""

    def __init__(self, model: Any, processor: Any, cache_bytes: int) -> None:
        self._base = model.base_model
        self._processor = processor
        self._image_token = image_token_id(model)
        self._forward_names = inspect.signature(self._base.forward).parameters
        self._read: BoundedCache[ImagePrompt] = BoundedCache(cache_bytes)
        # Here positions follow from where images are and how large; finding them takes as long as reading.
        self._by_shape = type(self._base) is Qwen2_5_VLModel
        self._placed: BoundedCache[tuple[NDArray[np.int64], int]] = BoundedCache(cache_bytes)

    def templated(self, text: str) -> str:
        """A user's message, `<image>` where images are, in the chat template, up to the response."""
        try:
            whole: str = self._processor.apply_chat_template(
                [user_message(text)], add_generation_prompt=True, tokenize=False
            )
        except ValueError as error:
            raise PolicyError(
                f"the policy's processor cannot make a message of a prompt: {error}; put a chat template "
                "into the policy's folder (chat_template.jinja)"
            ) from error
        return whole

    def read(self, question: Question) -> ImagePrompt:
        """The prompt of a question. PolicyError naming it when its images and placeholders do not match,
        or when the processor refuses an image."""
        known = self._read.get(question)
        if known is not None:
            return known
        placeholders = question.prompt.count(PLACEHOLDER)
        if placeholders != len(question.images):
            raise PolicyError(
                f"question {question.id!r} has {placeholders} {PLACEHOLDER} in its prompt and "
                f"{len(question.images)} images; each image needs one placeholder"
            )
        text = self.templated(question.prompt)
        return self._kept(self._encoded(question, f"question {question.id!r}", text, question.images))

    def read_templated(self, key: Hashable, text: str, images: Sequence[Any]) -> ImagePrompt:
        """The prompt of a text that is in the chat template already, its images in the model's own places.

        key: stands for both. PolicyError when the processor refuses them.
        """
        known = self._read.get(key)
        return known or self._kept(self._encoded(key, f"the prompt {text[:80]!r}", text, images))

    def _kept(self, prompt: ImagePrompt) -> ImagePrompt:
        self._read.put(prompt.key, prompt, prompt.bytes)
        return prompt

    @torch.no_grad()
    def _encoded(self, key: Hashable, name: str, text: str, images: Sequence[Any]) -> ImagePrompt:
        given = {"images": [[image.convert("RGB") for image in images]]} if images else {}
        with _readable(name):
            encoded = dict(self._processor(text=[text], return_tensors="pt", **given))
        ids = encoded.pop("input_ids")
        encoded.pop("attention_mask", None)
        types = {name: encoded.pop(name) for name in _TOKEN_TYPES if name in encoded}
        is_image = ids == self._image_token
        modality = types.get("mm_token_type_ids", is_image.long())
        if is_image.any() and not encoded:
            raise PolicyError(
                f"{name} has no images, but holds the token that stands for a piece of one; take it out"
            )
        with _readable(name):
            positions, following = self._positions(ids, modality, encoded)
        return ImagePrompt(
            ids[0].tolist(),
            key=key,
            pixels=encoded,
            image_tokens=int(is_image.sum()),
            token_types={
                name: value[0].numpy().astype(np.int64)
                for name, value in types.items()
                if name in self._forward_names
            },
            positions=positions,
            next_position=following,
        )

    def _positions(
        self, ids: Tensor, modality: Tensor, pixels: dict[str, Tensor]
    ) -> tuple[NDArray[np.int64], int]:
        """(A, P) positions of one prompt, as the model itself finds them, and the position after it."""
        width = ids.shape[1]
        if not hasattr(self._base, "get_rope_index"):
            return np.arange(width, dtype=np.int64)[None], width
        grids = {name: value for name, value in pixels.items() if name == "image_grid_thw"}
        shape = (modality.numpy().tobytes(), *(grid.numpy().tobytes() for grid in grids.values()))
        known = self._placed.get(shape) if self._by_shape else None
        if known is not None:
            return known
        positions, offset = self._base.get_rope_index(
            input_ids=ids, mm_token_type_ids=modality, attention_mask=torch.ones_like(ids), **grids
        )
        found = positions[:, 0].numpy().astype(np.int64), width + int(offset)
        if self._by_shape:
            self._placed.put(shape, found, found[0].nbytes + len(shape[0]))
        return found


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turns what a processor or a model's search for positions raises into a PolicyError that names a prompt.

    They check little: a place without its image, or one for a video, fails anywhere in their code.
    """
    try:
        yield
    except (AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise PolicyError(
            f"the processor cannot read {name}: {str(error) or type(error).__name__}; mend its text and "
            "images, or leave it out"
        ) from error


def image_token_id(model: Any) -> int:
    """The token that stands for a piece of an image. PolicyError when the model's config names none."""
    for name in ("image_token_id", "image_token_index"):
        if getattr(model.config, name, None) is not None:
            return int(getattr(model.config, name))
    raise PolicyError(
        f"{type(model).__name__} names no image_token_id in its config; it cannot be trained here"
    )
