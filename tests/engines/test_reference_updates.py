"""Updates: gradient accumulation is exact, the optimizer is AdamW, and what diverges stops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_policies import tiny_model
from torch import Tensor

from fastrl.engines.reference.logprobs import join_sequences, make_scorer, score
from fastrl.engines.reference.optimizer import PolicyOptimizer
from fastrl.engines.reference.update import TrainingDiverged, TrainingRows, UpdateTotals, update_policy
from fastrl.objectives.base import Objective
from fastrl.objectives.dapo import Dapo
from fastrl.objectives.dr_grpo import DrGrpo
from fastrl.objectives.grpo import Grpo
from fastrl.objectives.gspo import Gspo

OBJECTIVES: list[Objective] = [
    Grpo(0.2, 0.2, kl_coef=0.1, epsilon=1e-6),
    DrGrpo(0.2, 0.2, kl_coef=0.1, max_tokens=9),
    Dapo(0.2, 0.28, kl_coef=0.0, epsilon=1e-6),
    Gspo(3e-4, 4e-4, kl_coef=0.1, epsilon=1e-6),
]
PARTS = [torch.tensor([5, 0, 3, 8, 1]), torch.tensor([7, 2, 6, 4])]


def train(
    objective: Objective,
    micro_batch: int,
    parts: list[Tensor] = PARTS,
    advantage_scale: float = 1.0,
    max_grad_norm: float = 1e6,
    dtype: torch.dtype = torch.float32,
) -> tuple[dict[str, Tensor], UpdateTotals]:
    """The weights after two updates on nine trajectories of a tiny model."""
    rng = np.random.default_rng(0)
    model = tiny_model("llama").to(dtype).eval()
    lengths = np.array([3, 1, 6, 2, 5, 4, 1, 6, 2])
    sequences = join_sequences(
        [rng.integers(2, 20, size).tolist() for size in (4, 2, 3, 5, 1, 2, 6, 2, 3)],
        rng.integers(1, 20, lengths.sum()),
        np.cumsum([0, *lengths]),
        0,
        torch.device("cpu"),
    )
    scorer = make_scorer(model)
    reference = score(make_scorer(tiny_model("llama", seed=1).to(dtype).eval()), sequences, 1.0, 100)
    rows = TrainingRows(
        sequences,
        score(scorer, sequences, 1.0, 100),
        reference if objective.needs_reference else None,
        torch.from_numpy(rng.normal(size=9)).float() * advantage_scale,
    )
    optimizer = PolicyOptimizer(model, 1e-2, (0.9, 0.999), 0.01)
    totals = update_policy(
        scorer,
        optimizer,
        objective,
        rows,
        parts,
        temperature=1.0,
        micro_batch=micro_batch,
        learning_rate_scale=1.0,
        max_grad_norm=max_grad_norm,
        where="step 3",
    )
    return {name: master.detach() for name, master in optimizer.masters.items()}, totals


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("micro_batch", [1, 2, 3])
def test_the_micro_batch_size_does_not_change_an_update(objective: Objective, micro_batch: int) -> None:
    weights, totals = train(objective, micro_batch)
    expected_weights, expected = train(objective, micro_batch=100)
    assert totals.updates == expected.updates == 2
    assert totals.tokens == expected.tokens == 30
    for name in ("loss", "grad_norm", "clipped_tokens", "kl"):
        assert getattr(totals, name) == pytest.approx(getattr(expected, name), rel=1e-4, abs=1e-5)
    for name, weight in weights.items():
        torch.testing.assert_close(weight, expected_weights[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
def test_nothing_is_clipped_in_the_first_update(objective: Objective) -> None:
    _, totals = train(objective, micro_batch=2, parts=PARTS[:1])
    assert totals.clipped_tokens == 0
    _, totals = train(objective, micro_batch=2, advantage_scale=100.0)
    assert totals.clipped_tokens > 0  # the second update sees a changed policy


def test_the_gradient_norm_is_reported_before_clipping() -> None:
    free, unclipped = train(OBJECTIVES[0], 100, parts=PARTS[:1])
    bound, clipped = train(OBJECTIVES[0], 100, parts=PARTS[:1], max_grad_norm=1e-9)
    assert clipped.grad_norm == pytest.approx(unclipped.grad_norm)
    start = dict(tiny_model("llama").named_parameters())
    name = "model.embed_tokens.weight"
    assert (free[name] - start[name]).abs().max() > 10 * (bound[name] - start[name]).abs().max()


def test_an_update_that_is_not_finite_stops_and_says_where() -> None:
    with pytest.raises(TrainingDiverged, match=r"step 3, update 1 of 2: the gradient norm is nan"):
        train(OBJECTIVES[2], 100, advantage_scale=float("nan"))


def test_a_low_precision_policy_keeps_float32_weights_for_small_steps() -> None:
    """A learning rate far below bfloat16's resolution still moves the policy after enough steps."""
    model = torch.nn.Linear(1, 1, bias=False).to(torch.bfloat16)
    torch.nn.init.ones_(model.weight)
    optimizer = PolicyOptimizer(model, 1e-4, (0.9, 0.999), 0.0)
    for _ in range(100):
        optimizer.backward(model(torch.ones(1, dtype=torch.bfloat16)).sum())
        optimizer.step(1.0, 1.0)
    assert optimizer.masters["weight"].item() == pytest.approx(0.99, abs=1e-3)
    assert model.weight.item() == pytest.approx(0.99, abs=4e-3)
    assert model.weight.dtype == torch.bfloat16


def test_bfloat16_updates_run() -> None:
    weights, totals = train(OBJECTIVES[0], micro_batch=2, dtype=torch.bfloat16)
    assert totals.updates == 2
    assert all(weight.dtype == torch.float32 for weight in weights.values())
