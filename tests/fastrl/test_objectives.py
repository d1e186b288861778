"""Objectives: the written formulas in float64, exact under micro-batching, safe on empty responses."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastrl.objectives import OBJECTIVES
from fastrl.objectives.base import LossInputs, Objective, UpdateSize
from fastrl.objectives.dapo import Dapo
from fastrl.objectives.dapo_overlong import DapoOverlong
from fastrl.objectives.dr_grpo import DrGrpo
from fastrl.objectives.grpo import Grpo
from fastrl.objectives.gspo import Gspo
from fastrl.objectives.gspo_token import GspoToken

CLIP_LOW, CLIP_HIGH, KL, EPSILON, MAX_TOKENS = 0.2, 0.28, 0.05, 1e-6, 7
GRPO = Grpo(clip_low=CLIP_LOW, clip_high=CLIP_HIGH, kl_coef=KL, epsilon=EPSILON)
OBJECTIVES_UNDER_TEST: list[Objective] = [
    GRPO,
    DrGrpo(clip_low=CLIP_LOW, clip_high=CLIP_HIGH, kl_coef=KL, max_tokens=MAX_TOKENS),
    Dapo(clip_low=CLIP_LOW, clip_high=CLIP_HIGH, kl_coef=KL, epsilon=EPSILON),
    Gspo(clip_low=CLIP_LOW, clip_high=CLIP_HIGH, kl_coef=KL, epsilon=EPSILON),
    GspoToken(clip_low=CLIP_LOW, clip_high=CLIP_HIGH, kl_coef=KL, epsilon=EPSILON),
    DapoOverlong(
        clip_low=CLIP_LOW,
        clip_high=CLIP_HIGH,
        kl_coef=KL,
        epsilon=EPSILON,
        max_tokens=6,
        overlong_buffer=2,
        overlong_weight=1.0,
    ),
]
few_examples = settings(deadline=None, max_examples=40)
each_objective = pytest.mark.parametrize("objective", OBJECTIVES_UNDER_TEST, ids=lambda o: type(o).__name__)


@dataclasses.dataclass(frozen=True)
class Update:
    """One update's B trajectories in float64, with some ratios beyond the clip and some lengths of 0."""

    logp: Tensor
    old_logp: Tensor
    ref_logp: Tensor
    lengths: Tensor
    advantages: Tensor

    @property
    def mask(self) -> Tensor:
        return (torch.arange(self.logp.shape[1]) < self.lengths[:, None]).to(self.logp.dtype)

    @property
    def size(self) -> UpdateSize:
        return UpdateSize(sequences=len(self.lengths), tokens=int(self.lengths.sum()))

    def inputs(self, rows: slice | Tensor = slice(None), width: int | None = None) -> LossInputs:
        return LossInputs(
            logp=self.logp[rows, :width],
            old_logp=self.old_logp[rows, :width],
            ref_logp=self.ref_logp[rows, :width],
            mask=self.mask[rows, :width],
            advantages=self.advantages[rows],
        )


def update_of(seed: int, lengths: list[int], width: int = 6, scale: float = 0.3) -> Update:
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    old = -noise(len(lengths), width).abs()
    return Update(
        logp=(old + scale * noise(len(lengths), width)).requires_grad_(True),
        old_logp=old,
        ref_logp=old + scale * noise(len(lengths), width),
        lengths=torch.tensor(lengths),
        advantages=noise(len(lengths)),
    )


updates = st.builds(
    update_of, st.integers(0, 2**31), st.lists(st.integers(0, 6), min_size=1, max_size=7).filter(any)
)


def written_loss(objective: Objective, update: Update) -> Tensor:
    """The papers' formulas, one trajectory and one token at a time."""
    per_sequence: list[Tensor] = []
    for i, length in enumerate(update.lengths.tolist()):
        logp, old, ref = update.logp[i, :length], update.old_logp[i, :length], update.ref_logp[i, :length]
        advantage = update.advantages[i]
        tokens = []
        sequence_ratio = (logp - old).mean().exp() if length else None
        for t in range(length):
            ratio = sequence_ratio if isinstance(objective, Gspo | GspoToken) else (logp[t] - old[t]).exp()
            clipped = torch.clamp(ratio, 1 - CLIP_LOW, 1 + CLIP_HIGH)
            k3 = (ref[t] - logp[t]).exp() - (ref[t] - logp[t]) - 1
            tokens.append(-torch.min(ratio * advantage, clipped * advantage) + KL * k3)
        total = torch.stack(tokens).sum() if tokens else update.logp.sum() * 0
        if isinstance(objective, DrGrpo):
            per_sequence.append(total / MAX_TOKENS)
        elif isinstance(objective, Dapo):
            per_sequence.append(total / update.size.tokens * update.size.sequences)
        else:
            per_sequence.append(total / max(length, 1))
    return torch.stack(per_sequence).mean()


@each_objective
@few_examples
@given(update=updates)
def test_loss_and_gradient_are_those_of_the_written_formula(objective: Objective, update: Update) -> None:
    outputs = objective.loss(update.inputs(), update.size)
    expected = written_loss(objective, update)
    torch.testing.assert_close(outputs.loss, expected, rtol=1e-10, atol=1e-12)
    (gradient,) = torch.autograd.grad(outputs.loss, update.logp)
    (expected_gradient,) = torch.autograd.grad(expected, update.logp)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


@each_objective
@few_examples
@given(update=updates, data=st.data())
def test_shares_of_any_partition_into_micro_batches_add_up(
    objective: Objective, update: Update, data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(range(len(update.lengths))))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(rows) - 1)))))
    whole = objective.loss(update.inputs(), update.size)
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        part = torch.tensor(rows[start:stop], dtype=torch.long)
        if len(part):
            width = int(update.lengths[part].max())  # trimmed to its longest response, maybe to none
            parts.append(objective.loss(update.inputs(part, width), update.size))
    for name in ("loss", "clipped_tokens", "kl_sum"):
        total = sum(getattr(part, name) for part in parts)
        torch.testing.assert_close(total, getattr(whole, name), rtol=1e-10, atol=1e-12)


@each_objective
def test_first_update_has_ratio_one_and_clips_nothing(objective: Objective) -> None:
    update = update_of(0, [6, 3, 1], scale=0.0)
    outputs = objective.loss(update.inputs(), update.size)
    assert outputs.clipped_tokens.item() == 0
    assert outputs.kl_sum.item() == 0
    (gradient,) = torch.autograd.grad(outputs.loss, update.logp)
    unclipped = dataclasses.replace(objective, clip_low=0.99, clip_high=1e9)  # type: ignore[type-var]
    (expected,) = torch.autograd.grad(unclipped.loss(update.inputs(), update.size).loss, update.logp)
    assert torch.equal(gradient, expected)


@each_objective
def test_an_update_of_empty_responses_has_loss_and_gradient_zero(objective: Objective) -> None:
    update = update_of(1, [0, 0])
    outputs = objective.loss(update.inputs(), update.size)
    outputs.loss.backward()  # type: ignore[no-untyped-call]
    assert outputs.loss.item() == 0
    assert torch.equal(update.logp.grad, torch.zeros_like(update.logp))


@each_objective
def test_what_stands_in_the_padding_has_no_influence(objective: Objective) -> None:
    update = update_of(2, [4, 0, 2])
    clean = objective.loss(update.inputs(), update.size)
    junk = torch.where(update.mask > 0, update.old_logp, math.nan)
    junk_ref = torch.where(update.mask > 0, update.ref_logp, math.inf)
    dirty = objective.loss(
        dataclasses.replace(update.inputs(), old_logp=junk, ref_logp=junk_ref), update.size
    )
    assert dirty.loss.item() == clean.loss.item()
    (gradient,) = torch.autograd.grad(dirty.loss, update.logp)
    assert torch.isfinite(gradient).all()


@few_examples
@given(update=updates)
def test_gspo_has_the_gradient_of_gspo_token(update: Update) -> None:
    """With one advantage per sequence: s_t = sg[s] * pi / sg[pi], clipped and averaged token by token."""
    objective = Gspo(clip_low=0.01, clip_high=0.02, kl_coef=0.0, epsilon=EPSILON)
    (gradient,) = torch.autograd.grad(objective.loss(update.inputs(), update.size).loss, update.logp)
    total = update.logp.sum() * 0
    for i, length in enumerate(update.lengths.tolist()):
        if length:
            logp = update.logp[i, :length]
            sequence = (logp - update.old_logp[i, :length]).mean().exp().detach()
            ratio = sequence * (logp - logp.detach()).exp()
            clipped = ratio.clamp(0.99, 1.02)
            surrogate = torch.min(ratio * update.advantages[i], clipped * update.advantages[i])
            total = total - surrogate.mean() / update.size.sequences
    (expected,) = torch.autograd.grad(total, update.logp)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


@few_examples
@given(update=updates)
def test_gspo_token_is_gspo_for_one_advantage_per_sequence(update: Update) -> None:
    settings_ = {"clip_low": 0.01, "clip_high": 0.02, "kl_coef": KL, "epsilon": EPSILON}
    outputs = [kind(**settings_).loss(update.inputs(), update.size) for kind in (Gspo, GspoToken)]
    for name in ("loss", "clipped_tokens", "kl_sum"):
        first, second = (getattr(one, name) for one in outputs)
        torch.testing.assert_close(first, second, rtol=1e-10, atol=1e-12)
    first, second = (torch.autograd.grad(one.loss, update.logp)[0] for one in outputs)
    torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-12)


def test_gspo_token_takes_an_advantage_for_each_token() -> None:
    update = update_of(5, [3, 2])
    objective = GspoToken(clip_low=0.9, clip_high=9.0, kl_coef=0.0, epsilon=EPSILON)
    advantages = torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inputs = dataclasses.replace(update.inputs(), advantages=advantages)
    (gradient,) = torch.autograd.grad(objective.loss(inputs, update.size).loss, update.logp)
    for i, length in enumerate([3, 2]):
        ratio = (update.logp[i, :length] - update.old_logp[i, :length]).mean().exp().detach()
        expected = -ratio * advantages[i, :length] / length / 2
        torch.testing.assert_close(gradient[i, :length], expected, rtol=1e-9, atol=1e-12)
        assert (gradient[i, length:] == 0).all()


@each_objective
@few_examples
@given(update=updates)
def test_dropping_trajectories_of_advantage_zero_changes_nothing_without_kl(
    objective: Objective, update: Update
) -> None:
    """Under the original normaliser, that is with the totals of the trajectories before pruning."""
    objective = dataclasses.replace(objective, kl_coef=0.0)  # type: ignore[type-var]
    advantages = update.advantages.clone()
    advantages[::2] = 0.0
    update = dataclasses.replace(update, advantages=advantages)
    (whole,) = torch.autograd.grad(objective.loss(update.inputs(), update.size).loss, update.logp)
    kept = advantages.nonzero().squeeze(1)
    if len(kept):
        (pruned,) = torch.autograd.grad(objective.loss(update.inputs(kept), update.size).loss, update.logp)
        torch.testing.assert_close(pruned, whole, rtol=1e-10, atol=1e-13)


def test_clipping_stops_the_gradient_only_in_the_direction_of_the_advantage() -> None:
    logp = torch.log(torch.tensor([[1.5], [1.5], [0.5], [0.5]], dtype=torch.float64)).requires_grad_(True)
    inputs = LossInputs(
        logp=logp,
        old_logp=torch.zeros(4, 1, dtype=torch.float64),
        ref_logp=None,
        mask=torch.ones(4, 1, dtype=torch.float64),
        advantages=torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64),
    )
    outputs = Grpo(clip_low=0.2, clip_high=0.2, kl_coef=0.0, epsilon=EPSILON).loss(inputs, UpdateSize(4, 4))
    outputs.loss.backward()  # type: ignore[no-untyped-call]
    assert (logp.grad.squeeze(1) == 0).tolist() == [True, False, False, True]
    assert outputs.clipped_tokens.item() == 2


def test_k3_is_bounded_and_has_no_gradient_beyond_the_bound() -> None:
    logp = torch.tensor([[-40.0, -1.0, -1.0]], dtype=torch.float64, requires_grad=True)
    inputs = LossInputs(
        logp=logp,
        old_logp=logp.detach(),
        ref_logp=torch.tensor([[-1.0, -1.5, -60.0]], dtype=torch.float64),
        mask=torch.ones(1, 3, dtype=torch.float64),
        advantages=torch.zeros(1, dtype=torch.float64),
    )
    outputs = GRPO.loss(inputs, UpdateSize(1, 3))
    outputs.loss.backward()  # type: ignore[no-untyped-call]
    assert outputs.kl_sum.item() == pytest.approx(10 + (math.exp(-0.5) + 0.5 - 1) + 10)
    assert (logp.grad != 0).tolist() == [[False, True, False]]


def test_no_ratio_overflows_in_float32() -> None:
    inputs = LossInputs(
        logp=torch.tensor([[0.0]], requires_grad=True),
        old_logp=torch.tensor([[-1e4]]),
        ref_logp=torch.tensor([[1e4]]),
        mask=torch.ones(1, 1),
        advantages=torch.tensor([-1.0]),
    )
    for objective in OBJECTIVES_UNDER_TEST:
        assert torch.isfinite(objective.loss(inputs, UpdateSize(1, 1)).loss)


def test_a_missing_reference_is_an_error_and_not_a_silent_zero() -> None:
    inputs = dataclasses.replace(update_of(3, [2]).inputs(), ref_logp=None)
    with pytest.raises(ValueError, match=r"kl_coef=0\.05 needs reference log-probs"):
        GRPO.loss(inputs, UpdateSize(1, 2))


def test_advantages_are_normalised_as_the_method_says() -> None:
    rewards, offsets = np.array([1.0] + [0.0] * 7), np.array([0, 8])
    for objective in OBJECTIVES_UNDER_TEST:
        advantages = objective.advantages(rewards, offsets)
        expected = (0.875, -0.125) if isinstance(objective, DrGrpo) else (2.4749, -0.3536)
        assert advantages[:2] == pytest.approx(expected, abs=1e-4)
        assert not objective.advantages(np.full(8, 0.1, np.float32), offsets).any()


@each_objective
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip_low": 1.0}, "clip_low=1.0"),
        ({"clip_high": -0.1}, "clip_high=-0.1"),
        ({"kl_coef": -1.0}, "kl_coef=-1.0"),
    ],
)
def test_impossible_settings_are_refused(objective: Objective, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(objective, **change)  # type: ignore[type-var]


def test_the_reference_is_needed_only_with_a_kl_term() -> None:
    assert GRPO.needs_reference
    assert not dataclasses.replace(GRPO, kl_coef=0.0).needs_reference


def test_importing_the_objectives_loads_no_torch() -> None:
    code = "import sys, fastrl.objectives, fastrl.method; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert {"grpo", "dr_grpo", "dapo", "gspo"} <= OBJECTIVES.keys()
