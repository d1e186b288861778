"""Cosines of policy gradients: exact ones against one backward pass a trajectory, and those of the head.

Image-text policies are compared with transformers' own forward pass over one trajectory and its pixels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_vision import plain_logprobs
from tiny_policies import VOCABULARY, tiny_model
from tiny_vision_policies import VISION_ARCHITECTURES, mixed_questions, tiny_vision_policy
from torch import Tensor

from fastrl.engines.reference.gradient_similarity import (
    gradient_cosines,
    head_gradient_cosines,
    trajectory_gradients,
    vocabulary_sketch,
)
from fastrl.engines.reference.image_features import vision_parameters
from fastrl.engines.reference.logprobs import (
    Scorer,
    Sequences,
    join_sequences,
    make_scorer,
    response_logprobs,
)
from fastrl.engines.reference.policy import Policy, read_prompts, with_tower


def some_sequences(lengths: tuple[int, ...] = (3, 6, 1, 4)) -> Sequences:
    rng = np.random.default_rng(0)
    tokens = rng.integers(2, len(VOCABULARY), sum(lengths))
    prompts = [rng.integers(2, len(VOCABULARY), 2 + i % 2).tolist() for i in range(len(lengths))]
    return join_sequences(prompts, tokens, np.cumsum([0, *lengths]), 0, torch.device("cpu"))


def backward_cosines(
    model: Any, sequences: Sequences, parameters: list[Tensor], temperature: float
) -> Tensor:
    """One backward pass a trajectory, each alone in its batch."""
    rows = []
    for k in range(len(sequences)):
        alone = sequences.take(torch.tensor([k]))
        total = response_logprobs(make_scorer(model), alone, temperature).sum()
        gradients = torch.autograd.grad(total, parameters)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]).double())
    flat = torch.nn.functional.normalize(torch.stack(rows))
    return flat @ flat.T


@pytest.mark.parametrize("architecture", ["llama", "llama-gqa", "qwen2", "gpt2"])
def test_exact_cosines_are_those_of_a_backward_pass_a_trajectory(architecture: str) -> None:
    model, sequences = tiny_model(architecture).eval(), some_sequences()
    found = gradient_cosines(make_scorer(model), sequences, 0.7, chunk=3)
    expected = backward_cosines(model, sequences, list(model.parameters()), 0.7)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_head_cosines_are_those_of_the_output_layers_weight() -> None:
    model, sequences = tiny_model("llama-gqa").eval(), some_sequences()
    whole = vocabulary_sketch(len(VOCABULARY), 10_000, torch.Generator())
    found = head_gradient_cosines(make_scorer(model), sequences, 0.7, whole)
    expected = backward_cosines(model, sequences, [model.get_output_embeddings().weight], 0.7)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_a_wider_sketch_is_nearer() -> None:
    model, sequences = tiny_model("llama").eval(), some_sequences()
    scorer, exact = make_scorer(model), torch.eye(len(VOCABULARY))
    whole = head_gradient_cosines(scorer, sequences, 1.0, exact)

    def error(width: int) -> float:
        squares = []
        for seed in range(40):
            normal = torch.randn(len(VOCABULARY), width, generator=torch.Generator().manual_seed(seed))
            part = head_gradient_cosines(scorer, sequences, 1.0, normal / width**0.5)
            squares.append(float(((part - whole) ** 2).mean()))
        return float(np.mean(squares)) ** 0.5

    assert error(256) < 0.5 * error(8)


def test_an_empty_response_has_no_cosine() -> None:
    model = tiny_model("llama").eval()
    found = gradient_cosines(make_scorer(model), some_sequences((3, 0, 2)), 1.0, chunk=8)
    assert found[1].isnan().all()
    assert found[:, 1].isnan().all()
    assert not found[0, [0, 2]].isnan().any()


def test_a_head_that_caps_its_logits_is_refused() -> None:
    model = tiny_model("gemma2").eval()
    with pytest.raises(ValueError, match="caps or scales its logits"):
        head_gradient_cosines(make_scorer(model), some_sequences(), 1.0, torch.eye(len(VOCABULARY)))


TRAJECTORIES = [
    (3, [7, 8, 1]),
    (3, [10, 11, 12, 13, 14, 1]),
    (3, [7, 8, 1]),
    (0, [4, 4]),
    (2, [5, 1]),
    (4, [9]),
]
"""Of `mixed_questions` (number 3 has two images, 4 none) and response; a group first, with a duplicate."""


@pytest.fixture(params=VISION_ARCHITECTURES)
def seeing(request: pytest.FixtureRequest, tmp_path: Path) -> Policy:
    policy = tiny_vision_policy(tmp_path, request.param)
    policy.model.double()  # rounding to float32 alone makes differences of 8e-6
    return policy


def scorer_of(policy: Policy) -> Scorer:
    assert policy.vision is not None
    return make_scorer(policy.model, policy.vision.features)


def seen_sequences(policy: Policy) -> Sequences:
    prompts = read_prompts(policy, mixed_questions(), 200)
    responses = [response for _, response in TRAJECTORIES]
    return join_sequences(
        [prompts[number] for number, _ in TRAJECTORIES],
        np.concatenate(responses),
        np.cumsum([0, *map(len, responses)]),
        policy.pad_id,
        policy.device,
    )


def plain_gradients(policy: Policy, parameters: list[Tensor], temperature: float) -> Tensor:
    """(K, P): transformers' own forward and backward pass for each of `TRAJECTORIES`."""
    rows = []
    for number, response in TRAJECTORIES:
        total = plain_logprobs(policy, number, response, temperature).sum()
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]).double())
    return torch.stack(rows)


def cosines_of(rows: Tensor) -> Tensor:
    unit = torch.nn.functional.normalize(rows)
    return unit @ unit.T


@pytest.mark.parametrize("frozen", [True, False])
def test_gradients_with_images_are_those_of_the_models_own_forward_pass(seeing: Policy, frozen: bool) -> None:
    """Over what is trained: the vision tower among it unless it is frozen."""
    policy = with_tower(seeing, frozen=frozen, cache_bytes=1 << 20)
    scorer, sequences = scorer_of(policy), seen_sequences(policy)
    trained = {name: value for name, value in policy.model.named_parameters() if value.requires_grad}
    found = trajectory_gradients(scorer, sequences, 0.7, chunk=3)
    assert list(found) == list(trained)
    assert (dict(vision_parameters(policy.model)).keys() <= found.keys()) == (not frozen)
    rows = torch.cat([gradient.flatten(1) for gradient in found.values()], 1).double()
    expected = plain_gradients(policy, list(trained.values()), 0.7)
    assert ((rows - expected).norm(dim=1) <= 1e-5 * expected.norm(dim=1)).all()
    cosines = gradient_cosines(scorer, sequences, 0.7, chunk=3)
    torch.testing.assert_close(cosines, cosines_of(expected), rtol=0, atol=1e-5)


def test_a_trained_vision_tower_changes_the_cosines(tmp_path: Path) -> None:
    policy = tiny_vision_policy(tmp_path)
    frozen, trained = (
        gradient_cosines(scorer_of(seen), seen_sequences(seen), 1.0, chunk=1)
        for seen in (with_tower(policy, frozen=frozen, cache_bytes=1 << 20) for frozen in (True, False))
    )
    assert (frozen - trained).abs().max() > 1e-3


def test_head_cosines_with_images_are_those_of_the_output_layers_weight(seeing: Policy) -> None:
    """By the plain loop, and by the exact gradients of a policy that trains nothing else."""
    head = seeing.model.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.detach().clone())  # apart from the input's embeddings
    for parameter in seeing.model.parameters():
        parameter.requires_grad_(parameter is head.weight)
    scorer, sequences = scorer_of(seeing), seen_sequences(seeing)
    found = head_gradient_cosines(scorer, sequences, 0.7, torch.eye(len(head.weight)))
    expected = cosines_of(plain_gradients(seeing, [head.weight], 0.7))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    exact = gradient_cosines(scorer, sequences, 0.7, chunk=1)
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-5)
