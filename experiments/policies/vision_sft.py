"""Supervised warm-up of a Qwen2.5-VL on figures: first to read them, then to answer as a teacher does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F
from transformers import Qwen2_5_VLForConditionalGeneration

from experiments.policies.settings import VisionSftSettings
from experiments.policies.sft import BATCHES_PER_POOL, Example, Rows, padded, train
from fastrl.engines.reference.qwen_tower import QwenTower

_PAD = 0
"""Any token will do: none that counts looks at it."""


@dataclass(frozen=True)
class FigureExample:
    """A figure's patches (P, V) float32, as the image processor makes them, and what is said to it.

    caption: what stands in it. Every prompt begins with the image's tokens, the same number in all of them.
    """

    patches: torch.Tensor
    response: Example
    caption: Example


def warm_up(
    model: Qwen2_5_VLForConditionalGeneration,
    draw_examples: Callable[[int], Sequence[FigureExample]],
    grid: tuple[int, int],
    settings: VisionSftSettings,
    announce: Callable[[str], None],
) -> None:
    """Train `model` in place on `settings.steps` batches of figures, all of `grid` = (rows, columns) patches.

    The loss is the mean over the tokens of captions in the first `caption_steps` steps, over those of
    responses from then on, while the tower stays as it is. Raises as `experiments.policies.sft.train` does.
    """
    batches = _batches(draw_examples, settings.batch_size, random.Random(settings.seed))
    positions = _Positions(model, grid)

    def loss(step: int) -> torch.Tensor:
        examples = next(batches)
        reading = step <= settings.caption_steps
        with torch.set_grad_enabled(reading):
            features = positions.features(torch.stack([example.patches for example in examples]))
        said = [example.caption if reading else example.response for example in examples]
        return _loss(model, padded(said, _PAD), features, positions)

    train(model, loss, settings, announce)


class _Positions:
    """What is the same for all sequences: each begins with an image of the same grid."""

    def __init__(self, model: Qwen2_5_VLForConditionalGeneration, grid: tuple[int, int]) -> None:
        self._tower = QwenTower(model.model.visual)
        self._grid = torch.tensor([[1, *grid]])
        merge = model.config.vision_config.spatial_merge_size
        self.image_tokens = grid[0] * grid[1] // merge**2
        config = model.config
        length = config.text_config.max_position_embeddings
        tokens = torch.zeros((1, length), dtype=torch.int64)
        tokens[0, 0] = config.vision_start_token_id
        tokens[0, 1 : 1 + self.image_tokens] = config.image_token_id
        kinds = (tokens == config.image_token_id).to(torch.int32)
        self._all, _ = model.model.get_rope_index(tokens, kinds, image_grid_thw=self._grid)

    def features(self, patches: torch.Tensor) -> torch.Tensor:
        """(F, I, D) image features of figures' patches (F, P, V)."""
        seen = self._tower.features(patches.flatten(0, 1), self._grid.expand(len(patches), 3))
        return torch.stack(seen)

    def of(self, rows: int, length: int) -> torch.Tensor:
        """(3, R, L) positions: time, height and width."""
        positions: torch.Tensor = self._all[:, :, :length]
        return positions.expand(3, rows, length)


def _loss(
    model: Qwen2_5_VLForConditionalGeneration, rows: Rows, features: torch.Tensor, positions: _Positions
) -> torch.Tensor:
    tokens = rows.tokens[:, :-1]
    embedded = model.get_input_embeddings()(tokens)
    end = 1 + positions.image_tokens
    embedded = torch.cat([embedded[:, :1], features, embedded[:, end:]], dim=1)
    hidden = model.model.language_model(
        inputs_embeds=embedded, position_ids=positions.of(*tokens.shape), use_cache=False
    ).last_hidden_state
    logits = model.get_output_embeddings()(hidden[rows.is_target])
    return F.cross_entropy(logits, rows.targets)


def _batches(
    draw_examples: Callable[[int], Sequence[FigureExample]], batch_size: int, rng: random.Random
) -> Iterator[Sequence[FigureExample]]:
    """Batches of figures with responses of like length, so that little is padded."""
    while True:
        pool = sorted(draw_examples(BATCHES_PER_POOL * batch_size), key=_width)
        batches = [pool[start : start + batch_size] for start in range(0, len(pool), batch_size)]
        rng.shuffle(batches)
        yield from batches


def _width(example: FigureExample) -> int:
    return len(example.response)
