"""Cosines of policy gradients: exact ones against one backward pass a trajectory, and those of the head."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny_policies import VOCABULARY, tiny_model
from torch import Tensor

from fastrl.engines.reference.gradient_similarity import (
    gradient_cosines,
    head_gradient_cosines,
    vocabulary_sketch,
)
from fastrl.engines.reference.logprobs import Sequences, join_sequences, make_scorer, response_logprobs


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
    found = gradient_cosines(model, sequences, 0.7, chunk=3)
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
    found = gradient_cosines(model, some_sequences((3, 0, 2)), 1.0, chunk=8)
    assert found[1].isnan().all()
    assert found[:, 1].isnan().all()
    assert not found[0, [0, 2]].isnan().any()


def test_a_head_that_caps_its_logits_is_refused() -> None:
    model = tiny_model("gemma2").eval()
    with pytest.raises(ValueError, match="caps or scales its logits"):
        head_gradient_cosines(make_scorer(model), some_sequences(), 1.0, torch.eye(len(VOCABULARY)))
