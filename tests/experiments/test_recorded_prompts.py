"""Prompts behind recorded rollouts: what a run's engine gives to its policy, token by token."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from recorded_run import TEXT_POLICY
from test_correlate_command import seeing_run, tiny_llama

from eval.datasets import load_questions
from experiments.compose import compose_cell
from experiments.errors import UserError
from experiments.offline.prompts import run_prompts
from experiments.run_directory import RunDirectory
from fastrl.engines.reference.image_features import ImageFeatures
from fastrl.engines.reference.image_prompts import ImagePrompt
from fastrl.engines.reference.policy import Policy, PolicyError, load_policy
from fastrl.rollouts import Question

TEMPLATE = (
    "{% for m in messages %}w3 {{ m['content'] }} w4{% endfor %}{% if add_generation_prompt %} w5{% endif %}"
)


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return seeing_run(tmp_path_factory.mktemp("seeing"))


@pytest.fixture(scope="module")
def policy(seeing: RunDirectory) -> Policy:
    return load_policy(seeing.final_checkpoint, "cpu", "float32")


def first_question(config: dict[str, Any]) -> Question:
    return load_questions(config["dataset"], "train")[0]


def prompt_of_the_first(policy: Policy, config: dict[str, Any]) -> Any:
    name = first_question(config).id
    return run_prompts(policy, config, [name])(name)


def plain_inputs(policy: Policy, question: Question, image: Image.Image) -> dict[str, Any]:
    """What the processor makes of a user's message of an image and the question."""
    assert policy.vision is not None
    processor = policy.vision.processor
    content = [{"type": "image"}, {"type": "text", "text": question.prompt.removeprefix("<image>")}]
    message = [{"role": "user", "content": content}]
    text = processor.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
    return dict(processor(text=[text], images=[[image.convert("RGB")]], return_tensors="pt"))


def assert_reads(prompt: ImagePrompt, expected: dict[str, Any]) -> None:
    assert list(prompt) == expected["input_ids"][0].tolist()
    assert prompt.pixels["pixel_values"].equal(expected["pixel_values"])


def test_images_are_read_by_the_policys_processor(policy: Policy, seeing: RunDirectory) -> None:
    config = seeing.config()
    question = first_question(config)
    assert_reads(prompt_of_the_first(policy, config), plain_inputs(policy, question, question.images[0]))


@pytest.mark.parametrize(
    ("least", "most", "size"), [(1, 9999, (84, 56)), (1, 3000, (67, 44)), (9000, 9999, (116, 77))]
)
def test_easyr1_resizes_images_before_the_processor(
    least: int, most: int, size: tuple[int, int], policy: Policy, seeing: RunDirectory
) -> None:
    """Sides by the root of the share of pixels, cut to whole pixels."""
    config = seeing.config() | {"engine": {"name": "easyr1", "min_pixels": least, "max_pixels": most}}
    question = first_question(config)
    image = question.images[0].copy()
    assert image.size == (84, 56)
    resized = image if size == image.size else image.resize(size)
    assert_reads(prompt_of_the_first(policy, config), plain_inputs(policy, question, resized))


@pytest.mark.parametrize(
    ("engine", "template", "before", "after"),
    [
        ("reference", TEMPLATE, "", ""),
        ("easyr1_cpu", TEMPLATE, "w3 ", " w4 w5"),
        ("easyr1_cpu", None, "", ""),
    ],
)
def test_a_text_policy_gets_a_message_on_easyr1_alone(
    engine: str, template: str | None, before: str, after: str, tmp_path: Path
) -> None:
    """In its chat template, where it has one."""
    policy = load_policy(tiny_llama(tmp_path, 18), "cpu", "float32")
    policy.tokenizer.chat_template = template
    config = compose_cell([*TEXT_POLICY, f"engine={engine}"])
    text = f"{before}{first_question(config).prompt}{after}"
    assert prompt_of_the_first(policy, config) == policy.tokenizer(text)["input_ids"]


def test_a_model_that_is_read_otherwise_than_by_itself_is_refused(
    policy: Policy, seeing: RunDirectory
) -> None:
    """As of an architecture whose positions the engine does not know."""
    assert policy.vision is not None

    class OneDimension(ImageFeatures):
        def place(self, *arguments: Any, **options: Any) -> Any:
            right = super().place(*arguments, **options)
            flat = torch.arange(right.positions.shape[-1]).expand_as(right.positions)
            return dataclasses.replace(right, positions=flat)

    misread = dataclasses.replace(
        policy.vision, features=OneDimension(policy.model, constant=True, cache_bytes=0)
    )
    with pytest.raises(PolicyError, match=r"Qwen2_5_VL.* is not read right"):
        prompt_of_the_first(dataclasses.replace(policy, vision=misread), seeing.config())


def test_a_question_that_is_gone_from_the_data_set_is_named(policy: Policy, seeing: RunDirectory) -> None:
    with pytest.raises(UserError, match="The question 'gone' has no prompt"):
        run_prompts(policy, seeing.config(), ["gone"])
