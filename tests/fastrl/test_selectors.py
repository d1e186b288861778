"""What holds for every selector, and what random, CPPO and advantage-only promise."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batch_of, batches, members, random_batch

from fastrl.advantages import advantage_classes, group_advantages
from fastrl.rollouts import Rollouts
from fastrl.selectors import SELECTORS
from fastrl.selectors.advantage_only import AdvantageOnly
from fastrl.selectors.base import Selector
from fastrl.selectors.cppo import Cppo
from fastrl.selectors.mdap import Mdap
from fastrl.selectors.random_fraction import RandomFraction

SETTINGS: dict[str, dict[str, object]] = {
    "advantage_only": {"epsilon": 1e-4},
    "all": {},
    "cppo": {"pruning_rate": 0.5, "epsilon": 1e-4, "scope": "question", "allocation": False},
    "dppo": {"pruning_rate": 0.7, "epsilon": 1e-4, "mean_over": "sequences"},
    "gfpo": {"keep": 3, "metric": "token_efficiency", "std_normalise": True, "epsilon": 1e-6},
    "mc_grpo": {"scale": "mad", "epsilon": 1e-3},
    "mdap": {
        "tau": 0.6,
        "compare": "retained",
        "epsilon": 1e-4,
        "weight": "cluster_size",
        "drop_zero_variance": False,
        "kernel": "numpy",
    },
    "pods": {"keep": 3, "std_normalise": True, "epsilon": 1e-6},
    "random": {"pruning_rate": 0.5},
}


def cppo_of(pruning_rate: float, scope: Literal["question", "batch"] = "question") -> Cppo:
    return Cppo(pruning_rate, 1e-4, scope, allocation=False)


def advantages_of(batch: Rollouts) -> np.ndarray:
    return group_advantages(batch.rewards, batch.offsets, True, 1e-6)


def test_every_selector_is_tried_here() -> None:
    assert set(SETTINGS) == set(SELECTORS)


@pytest.fixture(params=sorted(SELECTORS))
def selector(request: pytest.FixtureRequest) -> Selector:
    return SELECTORS[request.param](**SETTINGS[request.param])


@given(batch=batches(largest_group=20), seed=st.integers(0, 3))
def check_contract(selector: Selector, batch: Rollouts, seed: int) -> None:
    advantages = advantages_of(batch)
    before = advantages.tobytes(), batch.tokens.tobytes(), batch.rewards.tobytes()
    selection = selector.select(batch, advantages, np.random.default_rng(seed))

    assert (advantages.tobytes(), batch.tokens.tobytes(), batch.rewards.tobytes()) == before
    assert (np.diff(selection.kept) > 0).all()
    assert selection.kept.dtype == np.int64
    kept = set(selection.kept.tolist())
    assert all(kept & set(group) for group in members(batch))
    assert len(selection.priority) == len(selection.reason) == batch.n_trajectories
    assert [not reason for reason in selection.reason] == [i in kept for i in range(batch.n_trajectories)]
    for extra in (selection.weight, selection.advantage_override):
        assert extra is None or (len(extra) == len(kept) and np.isfinite(extra).all())

    again = selector.select(batch, advantages, np.random.default_rng(seed))
    assert again.kept.tolist() == selection.kept.tolist()
    assert again.priority.tobytes() == selection.priority.tobytes()


def test_contract(selector: Selector) -> None:
    check_contract(selector)


def test_a_batch_without_groups(selector: Selector) -> None:
    selection = selector.select(batch_of([]), np.zeros(0), np.random.default_rng(0))
    assert len(selection.kept) == len(selection.reason) == 0


def test_same_question_twice_stays_two_groups(selector: Selector) -> None:
    twice = batch_of([[1, 1, 1, 1], [1, 1, 1, 1]], [[1, 2]] * 8, question_ids=["q", "q"])
    selection = selector.select(twice, advantages_of(twice), np.random.default_rng(0))
    kept = selection.kept.tolist()
    assert any(i < 4 for i in kept)
    assert any(i >= 4 for i in kept)


@given(batches(), st.integers(0, 9))
def test_all_keeps_everything(batch: Rollouts, seed: int) -> None:
    selection = SELECTORS["all"]().select(batch, advantages_of(batch), np.random.default_rng(seed))
    assert selection.kept.tolist() == list(range(batch.n_trajectories))


@st.composite
def cppo_cases(draw: st.DrawFn) -> tuple[Rollouts, Cppo]:
    """Groups of one size, and a rate that keeps a whole number of it."""
    n = draw(st.integers(1, 16))
    groups = draw(st.integers(1, 4))
    raw = draw(st.binary(min_size=n * groups, max_size=n * groups))
    rewards = [byte % draw(st.sampled_from([2, 4, 256])) / 2 for byte in raw]
    k = draw(st.integers(1, n))
    return batch_of([rewards[q * n : (q + 1) * n] for q in range(groups)]), cppo_of(1 - k / n)


@given(cppo_cases())
def test_cppo_keeps_exactly_k_of_largest_absolute_advantage(case: tuple[Rollouts, Cppo]) -> None:
    batch, cppo = case
    advantages = np.abs(advantages_of(batch))
    kept = set(cppo.select(batch, advantages_of(batch), np.random.default_rng(0)).kept.tolist())
    for group in members(batch):
        assert cppo.problem_with(len(group)) is None
        inside = [advantages[i] for i in group if i in kept]
        outside = [advantages[i] for i in group if i not in kept]
        assert len(inside) == round(len(group) * (1 - cppo.pruning_rate))
        assert not outside or min(inside) > max(outside) - cppo.epsilon


@given(half=st.integers(1, 16), k=st.integers(2, 32), order=st.randoms(use_true_random=False))
def test_cppo_keeps_both_signs_of_a_tie(half: int, k: int, order: object) -> None:
    rewards = [0.1, 1.1] * half
    order.shuffle(rewards)  # type: ignore[attr-defined]
    batch = batch_of([rewards])
    cppo = cppo_of(1 - min(k, 2 * half) / (2 * half))
    kept = cppo.select(batch, advantages_of(batch), np.random.default_rng(0)).kept
    right = sum(rewards[i] > 1 for i in kept)
    assert right - (len(kept) - right) in (0, 1)


def test_cppo_takes_the_rare_class_first_then_the_lowest_index() -> None:
    batch = batch_of([[0, 0, 1, 0, 0, 0, 0, 0]])
    assert cppo_of(0.75).select(batch, advantages_of(batch), np.random.default_rng(0)).kept.tolist() == [
        0,
        2,
    ]


def test_cppo_with_a_rate_that_keeps_no_whole_number_says_which_would() -> None:
    assert cppo_of(0.5).problem_with(8) is None
    assert cppo_of(0.9).problem_with(10) is None
    problem = cppo_of(0.5).problem_with(7)
    assert problem is not None
    assert "would keep 3.5 of 7 trajectories" in problem
    rates = [float(rate) for rate in problem.split("possible rates: ")[1].split(", ")]
    assert [cppo_of(rate).problem_with(7) for rate in rates] == [None] * 7
    assert "would keep 0.5 of 5" in (cppo_of(0.9).problem_with(5) or "")


def test_cppo_keeps_the_whole_part_in_a_group_that_lost_trajectories() -> None:
    batch = batch_of([[0, 1, 1, 0, 0, 0, 1], [1.0]])
    kept = cppo_of(0.5).select(batch, advantages_of(batch), np.random.default_rng(0)).kept
    assert (np.searchsorted([7, 8], kept, side="right") == 0).sum() == 3
    assert 7 in kept


@pytest.mark.parametrize(
    ("rate", "n", "kept"), [(0.25, 8, 6), (0.5, 8, 4), (0.75, 8, 2), (0.75, 5, 1), (0.95, 10, 1)]
)
def test_random_keeps_the_rounded_share(rate: float, n: int, kept: int) -> None:
    batch = batch_of([[0.0] * n, [1.0] * n])
    selection = RandomFraction(rate).select(batch, np.zeros(2 * n), np.random.default_rng(0))
    assert [int((selection.kept // n == q).sum()) for q in range(2)] == [kept, kept]
    for priority in selection.priority.reshape(2, n):
        assert set(np.argsort(-priority)[:kept]) <= {i % n for i in selection.kept}


def test_random_draws_every_trajectory_alike_and_its_back_filling_too() -> None:
    batch = batch_of([[0, 1] * 4])
    kept, first_to_fill = np.zeros(8), np.zeros(8)
    for seed in range(800):
        selection = RandomFraction(0.75).select(batch, advantages_of(batch), np.random.default_rng(seed))
        kept[selection.kept] += 1
        left = np.setdiff1d(np.arange(8), selection.kept)
        first_to_fill[left[np.argmax(selection.priority[left])]] += 1
    assert np.abs(kept - 200).max() < 60
    assert np.abs(first_to_fill - 100).max() < 50


@given(batches(), st.integers(0, 9))
def test_advantage_only_keeps_one_of_each_class(batch: Rollouts, seed: int) -> None:
    advantages = advantages_of(batch)
    kept = AdvantageOnly(1e-4).select(batch, advantages, np.random.default_rng(seed)).kept
    classes = advantage_classes(advantages, batch.offsets, 1e-4)
    for group in members(batch):
        assert sorted(classes[i] for i in kept if i in group) == sorted({classes[i] for i in group})


def test_advantage_only_may_keep_any_member_and_keeps_as_many_as_mdap_with_tau_1() -> None:
    batch = batch_of([[1, 0, 1, 1]])
    seen = {
        tuple(
            AdvantageOnly(1e-4).select(batch, advantages_of(batch), np.random.default_rng(seed)).kept.tolist()
        )
        for seed in range(60)
    }
    assert seen == {(0, 1), (1, 2), (1, 3)}
    large = random_batch(np.random.default_rng(1), 40, 16, continuous=False)
    seeds = Mdap(1.0, "seed", 1e-4, "none", False, "numpy").select(
        large, advantages_of(large), np.random.default_rng(0)
    )
    drawn = AdvantageOnly(1e-4).select(large, advantages_of(large), np.random.default_rng(0))
    assert len(seeds.kept) == len(drawn.kept)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("mdap", "tau", 1.2),
        ("mdap", "tau", float("nan")),
        ("mdap", "epsilon", 0.0),
        ("cppo", "pruning_rate", 1.0),
        ("cppo", "epsilon", 0.0),
        ("random", "pruning_rate", -0.1),
        ("dppo", "pruning_rate", 1.0),
        ("dppo", "epsilon", 0.0),
        ("gfpo", "keep", 0),
        ("gfpo", "epsilon", -1.0),
        ("mc_grpo", "epsilon", 0.0),
        ("pods", "keep", 0),
        ("pods", "epsilon", -1.0),
        ("advantage_only", "epsilon", -1.0),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{field}={value}"):
        SELECTORS[name](**{**SETTINGS[name], field: value})
