"""The laptop policy that sees: a Qwen2.5-VL of about 0.5 M parameters, warmed up on figures and a teacher.

It solves about two fifths of the problems when sampled once and nearly all within eight samples. Numbers and
shapes stand in the figures alone, so it has to read them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedTokenizerFast

from eval.datasets.laptop_figures.figure import HEIGHT, WIDTH
from eval.datasets.laptop_figures.problem import FIGURES, IMAGE_MARK, PicturedProblem, caption, prompt
from eval.datasets.laptop_geometry.splits import Pools, warmup_pools
from eval.datasets.laptop_geometry.teacher import TeacherShares, teacher_response
from eval.datasets.settings import LaptopGeometrySplits
from experiments.policies.qwen_vision import (
    ASSISTANT,
    IMAGE,
    IMAGE_MEAN,
    IMAGE_STD,
    MERGE,
    PATCH,
    SPECIAL,
    VISION_END,
    VISION_START,
    qwen_vision_model,
    save_qwen_vision,
)
from experiments.policies.saving import system_errors
from experiments.policies.settings import LaptopVision, TokenizerSettings
from experiments.policies.sft import Example
from experiments.policies.tokenizer import train_tokenizer
from experiments.policies.vision_sft import FigureExample, warm_up
from experiments.policies.warm_up_data import check_warm_up_set, written_numbers

GRID = (HEIGHT // PATCH, WIDTH // PATCH)
"""Patches of a figure: rows, columns."""

CAPTION_QUESTION = f"{IMAGE_MARK}Describe the figure."

_IMAGE_TOKENS = GRID[0] * GRID[1] // MERGE**2


def build(
    model_config: Mapping[str, Any],
    dataset_config: Mapping[str, Any],
    folder: Path,
    announce: Callable[[str], None],
) -> None:
    """Build the policy and save it into `folder`, for AutoModelForImageTextToText to load.

    Seeds, threads and random state are as in `experiments.policies.laptop_llama.build`. Raises ValueError for
    a data set that it does not know how to warm up on and for transformers before 5, OSError when the folder
    can't be written.
    """
    settings = LaptopVision.from_mapping(model_config)
    if int(transformers.__version__.partition(".")[0]) < 5:
        raise ValueError(
            f"{settings.name} is built with transformers 5, and this environment has "
            f"{transformers.__version__}: train a cell of it with engine={settings.engine} and the same "
            "paths.root first, which builds it"
        )
    check_warm_up_set(settings, dataset_config)
    splits = LaptopGeometrySplits.from_mapping(dataset_config["splits"])
    in_domain, out_of_domain = warmup_pools(splits, FIGURES)
    tokenizer = _tokenizer(settings.tokenizer, in_domain | out_of_domain, settings.sft.teacher)
    announce(f"tokenizer: {len(tokenizer)} tokens")
    rng = random.Random(settings.sft.seed)

    @cache
    def prompt_tokens(text: str) -> list[int]:
        image = f"{VISION_START}{IMAGE * _IMAGE_TOKENS}{VISION_END}"
        tokens: list[int] = tokenizer(text.replace(IMAGE_MARK, image) + ASSISTANT).input_ids
        return tokens

    def draw_examples(count: int) -> list[FigureExample]:
        problems = [
            _draw_problem(
                out_of_domain if rng.random() < settings.sft.out_of_domain_share else in_domain, rng
            )
            for _ in range(count)
        ]
        said = [
            text + SPECIAL.eos
            for each in problems
            for text in (caption(each), teacher_response(each, settings.sft.teacher, rng))
        ]
        tokens = tokenizer(said).input_ids
        parts = zip(problems, figure_patches(problems), tokens[::2], tokens[1::2], strict=True)
        return [
            FigureExample(
                patches=patches,
                caption=Example(prompt_tokens(CAPTION_QUESTION), captioned),
                response=Example(prompt_tokens(prompt(each)), answered),
            )
            for each, patches, captioned, answered in parts
        ]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.sft.seed)
            model = qwen_vision_model(settings.architecture, tokenizer)
            warm_up(model, draw_examples, GRID, settings.sft, announce)
    finally:
        torch.set_num_threads(threads)
    with system_errors(folder):
        save_qwen_vision(model, tokenizer, WIDTH * HEIGHT, folder)


def figure_patches(problems: Sequence[PicturedProblem]) -> torch.Tensor:
    """(F, P, 588) float32: what the policy's image processor makes of the figures, of all of them at once."""
    grey = np.stack([np.asarray(problem.picture(), dtype=np.float32) for problem in problems])
    rows, columns = GRID[0] // MERGE, GRID[1] // MERGE
    # (figure, row, merged row, y, column, merged column, x): tokens first, then their patches.
    cut = grey.reshape(len(problems), rows, MERGE, PATCH, columns, MERGE, PATCH)
    patches = cut.transpose(0, 1, 4, 2, 5, 3, 6).reshape(len(problems), GRID[0] * GRID[1], -1)
    return torch.from_numpy(np.tile((patches / 255 - IMAGE_MEAN) / IMAGE_STD, 3))


def _draw_problem(pools: Pools, rng: random.Random) -> PicturedProblem:
    # A family of many exercises takes longer to learn than one of few, but not in proportion.
    weights = [math.sqrt(len(problems)) for problems in pools.values()]
    problem = rng.choice(rng.choices(list(pools.values()), weights)[0])
    assert isinstance(problem, PicturedProblem)
    return problem


def _tokenizer(settings: TokenizerSettings, pools: Pools, teacher: TeacherShares) -> PreTrainedTokenizerFast:
    """Learnt on questions, captions and responses of all families alike."""
    rng = random.Random(settings.seed)
    texts: list[str] = []
    for _ in range(settings.corpus_size):
        problem = _draw_problem(pools, rng)
        texts += [problem.text, caption(problem), teacher_response(problem, teacher, rng)]
    texts.append(CAPTION_QUESTION.replace(IMAGE_MARK, ""))
    exercises = {each.exercise: each for each in chain.from_iterable(pools.values())}
    numbers = written_numbers(exercises.values(), lambda problem: " ".join(map(str, problem.given)))
    return train_tokenizer(texts, numbers, settings.vocab_size, settings.max_token_length, SPECIAL)
