"""What transformers takes without complaint and reads wrongly, and that this engine does not do so."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_vision import plain_logprobs
from tiny_vision_policies import (
    mixed_questions,
    noise,
    save_tiny_vision_policy,
    tiny_vision_policy,
    vision_questions,
)
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPooling

from fastrl.engines.reference import image_check
from fastrl.engines.reference.image_check import check_images
from fastrl.engines.reference.image_features import ImageFeatures
from fastrl.engines.reference.image_prompts import ImagePrompt
from fastrl.engines.reference.logprobs import Scorer, join_sequences, make_scorer, score
from fastrl.engines.reference.policy import Policy, left_padded, load_policy, read_prompts
from fastrl.engines.reference.policy_error import PolicyError
from fastrl.engines.reference.sampler import sample
from fastrl.rollouts import Question

RESPONSE = [7, 8, 9, 10, 1]
WRONG = 0.01
"""Log-probabilities that differ by more are another distribution's."""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return tiny_vision_policy(tmp_path_factory.mktemp("policy") / "qwen")


def read(policy: Policy, question: Question) -> ImagePrompt:
    (prompt,) = read_prompts(policy, [question], 200)
    assert isinstance(prompt, ImagePrompt)
    return prompt


def own_logprobs(policy: Policy, prompt: ImagePrompt) -> Tensor:
    assert policy.vision is not None
    sequences = join_sequences(
        [prompt], np.array(RESPONSE), np.array([0, len(RESPONSE)]), policy.pad_id, policy.device
    )
    return score(make_scorer(policy.model, policy.vision.features), sequences, 1.0, 1)[0]


@torch.no_grad()
def difference(
    policy: Policy, prompt: ImagePrompt, number: int, change: Callable[[dict[str, Any]], Any]
) -> float:
    """Between the engine's reading of one of the mixed questions and the model's own, its inputs changed."""
    plain = plain_logprobs(policy, number, RESPONSE, change=change)
    return float((own_logprobs(policy, prompt) - plain).abs().max())


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_the_engines_reading_is_that_of_the_full_inputs(number: int, tmp_path: Path) -> None:
    policy = tiny_vision_policy(tmp_path / "qwen")
    policy.model.double()  # rounding to float32 alone makes differences of 1e-5 on some machines
    prompt = read(policy, mixed_questions()[number])
    assert difference(policy, prompt, number, lambda inputs: None) < 1e-5


def test_leaving_out_the_token_types_is_another_reading(policy: Policy) -> None:
    prompt = read(policy, mixed_questions()[1])
    assert difference(policy, prompt, 1, lambda inputs: inputs.pop("mm_token_type_ids")) > WRONG


def test_positions_in_one_dimension_are_another_reading(policy: Policy) -> None:
    prompt = read(policy, mixed_questions()[1])

    def one_dimension(inputs: dict[str, Any]) -> None:
        inputs["position_ids"] = inputs["attention_mask"].cumsum(1) - 1

    assert difference(policy, prompt, 1, one_dimension) > WRONG


def test_embeddings_alone_with_what_an_earlier_batch_left_behind_are_another_reading(policy: Policy) -> None:
    assert policy.vision is not None
    prompt = read(policy, mixed_questions()[1])
    (features, *_) = policy.vision.features.of([prompt])[prompt.key]

    def embeddings_alone(inputs: dict[str, Any]) -> None:
        ids = inputs["input_ids"]
        at_images = (ids == policy.model.config.image_token_id)[..., None]
        embedded = policy.model.get_input_embeddings()(ids).masked_scatter(at_images, features)
        mask = inputs["attention_mask"]
        inputs.clear()
        inputs.update(inputs_embeds=embedded, attention_mask=mask)
        policy.model.model.rope_deltas = torch.tensor([[-5]])

    assert difference(policy, prompt, 1, embeddings_alone) > WRONG


def test_what_an_earlier_batch_left_behind_changes_nothing_here(policy: Policy) -> None:
    prompt = read(policy, mixed_questions()[1])
    expected = own_logprobs(policy, prompt)
    policy.model.model.rope_deltas = torch.tensor([[-5], [3]])
    assert torch.equal(own_logprobs(policy, prompt), expected)


def test_a_response_begins_at_the_length_without_image_tokens_and_half_the_longer_side(
    policy: Policy,
) -> None:
    for question in mixed_questions():
        prompt = read(policy, question)
        grids = prompt.pixels.get("image_grid_thw", torch.zeros(0, 3, dtype=torch.long))
        sides = sum(int(max(grid[1:])) // 2 for grid in grids)
        assert prompt.next_position == len(prompt) - prompt.image_tokens + sides
        assert prompt.next_position == prompt.positions.max() + 1
    prompt = read(policy, mixed_questions()[1])
    counted = ImagePrompt(prompt, **{**vars(prompt), "next_position": len(prompt), "key": "counted"})
    late = own_logprobs(policy, counted) - own_logprobs(policy, prompt)
    assert late[0].abs() < 1e-5 and late.abs().max() > WRONG  # the prompt's own logits know nothing of it


def test_sampling_is_from_all_tokens_whatever_the_policys_generation_settings(tmp_path: Path) -> None:
    """transformers' default top_k of 50, or one in the folder, would make samples and log-probs disagree."""
    folder = save_tiny_vision_policy(tmp_path / "policy")
    policy = load_policy(folder, "cpu", "float32")
    policy.model.generation_config.top_k = 2
    policy.model.generation_config.temperature = 0.1
    prompt = read(policy, vision_questions(1)[0])
    with torch.no_grad():
        ids, mask = left_padded([prompt], 0, policy.device)
        types = torch.from_numpy(prompt.token_types["mm_token_type_ids"])[None]
        logits = policy.model(
            input_ids=ids, attention_mask=mask, mm_token_type_ids=types, **prompt.pixels
        ).logits
    expected = logits[0, -1].softmax(-1)
    n = 4000
    drawn = sample(
        policy,
        [prompt],
        n,
        max_tokens=1,
        temperature=1.0,
        batch=n,
        generator=torch.Generator().manual_seed(0),
    )
    counts = Counter(drawn.tokens[:, 0].tolist())
    assert len(counts) > 5
    for token, probability in enumerate(expected.tolist()):
        sigma = (probability * (1 - probability) / n) ** 0.5
        assert abs(counts[token] / n - probability) < 5 * sigma + 1e-9
    np.testing.assert_allclose(
        drawn.logp[:, 0], expected.log()[drawn.tokens[:, 0]].numpy(), rtol=1e-5, atol=1e-5
    )


# The feature cache


def test_ready_features_are_read_as_the_images_themselves(policy: Policy) -> None:
    assert policy.vision is not None
    prompt = read(policy, mixed_questions()[3])
    (features, *_) = policy.vision.features.of([prompt])[prompt.key]

    def ready(inputs: dict[str, Any]) -> None:
        inputs.pop("pixel_values")
        inputs["mm_encoder_outputs"] = {"image": BaseModelOutputWithPooling(pooler_output=(features,))}

    assert difference(policy, prompt, 3, ready) < 1e-5


def test_a_tower_that_changes_is_never_read_from_memory(tmp_path: Path) -> None:
    policy = tiny_vision_policy(tmp_path / "policy")
    prompts = [read(policy, question) for question in vision_questions(2)]
    trained = ImageFeatures(policy.model, constant=False, cache_bytes=1 << 20)
    before = trained.of(prompts)
    with torch.no_grad():
        policy.model.model.visual.merger.mlp[0].weight.mul_(1.5)
    after = trained.of(prompts)
    for prompt in prompts:
        assert (after[prompt.key][0] - before[prompt.key][0]).abs().max() > WRONG


def test_features_belong_to_an_image_and_not_to_a_name(policy: Policy) -> None:
    """Two splits may use an id twice, and a set may have changed."""
    first, other = (
        Question("q", "<image> 1", "1", images=(noise(1),)),
        Question("q", "<image> 1", "1", images=(noise(2),)),
    )
    again = dataclasses.replace(first, images=(noise(1),))
    assert policy.vision is not None
    found = policy.vision.features.of([read(policy, question) for question in (first, other, again)])
    assert len(found) == 2
    one, two = found.values()
    assert (one[0] - two[0]).abs().max() > WRONG


# The check at the start of a run


def test_a_model_that_is_read_otherwise_than_by_itself_is_refused(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy.vision is not None
    scorer = make_scorer(policy.model, policy.vision.features)
    check_images(policy, scorer, mixed_questions())

    class OneDimension(ImageFeatures):
        def place(self, *arguments: Any, **options: Any) -> Any:
            right = super().place(*arguments, **options)
            flat = torch.arange(right.positions.shape[-1]).expand_as(right.positions)
            return dataclasses.replace(right, positions=flat)

    wrong = OneDimension(policy.model, constant=True, cache_bytes=0)
    with pytest.raises(
        PolicyError, match=r"Qwen2_5_VL.* not read right in training: .* question 'q0' are off by"
    ):
        check_images(policy, Scorer(policy.model, True, wrong), mixed_questions())
    blind = dataclasses.replace(policy, vision=dataclasses.replace(policy.vision, features=wrong))
    with pytest.raises(PolicyError, match="not read right in sampling"):
        check_images(blind, scorer, mixed_questions())


def test_questions_without_images_need_no_check(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_check, "_differences", lambda *arguments: pytest.fail("a check was made"))
    assert policy.vision is not None
    check_images(policy, make_scorer(policy.model, policy.vision.features), [Question("t", "a b", "1")])
