"""PODS, GFPO, MC-GRPO and DPPO: which trajectories they keep, with which advantages or weights."""

from __future__ import annotations

import itertools
import statistics
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batch_of, batches, members

from fastrl.advantages import group_advantages
from fastrl.rollouts import Rollouts
from fastrl.selectors.base import Selection, Selector
from fastrl.selectors.dppo import Dppo
from fastrl.selectors.gfpo import Gfpo
from fastrl.selectors.mc_grpo import McGrpo
from fastrl.selectors.pods import Pods


def selected(selector: Selector, batch: Rollouts, seed: int = 0) -> Selection:
    advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
    return selector.select(batch, advantages, np.random.default_rng(seed))


def override_of(selection: Selection) -> dict[int, float]:
    """The advantage that each kept trajectory gets."""
    assert selection.advantage_override is not None
    return dict(zip(selection.kept.tolist(), selection.advantage_override.tolist(), strict=True))


@given(batches(largest_group=10, most_groups=3, continuous=True), st.integers(1, 10))
def test_pods_keeps_as_much_variance_as_any_subset(batch: Rollouts, keep: int) -> None:
    kept = set(selected(Pods(keep, True, 1e-6), batch).kept.tolist())
    for group in members(batch):
        rewards = {i: float(batch.rewards[i]) for i in group}
        inside = [i for i in group if i in kept]
        assert len(inside) == min(keep, len(group))
        best = max(
            statistics.pvariance([rewards[i] for i in subset])
            for subset in itertools.combinations(group, len(inside))
        )
        scale = max(abs(reward) for reward in rewards.values()) ** 2
        assert statistics.pvariance([rewards[i] for i in inside]) >= best - 1e-9 * scale


def test_pods_takes_the_extremes_and_the_lowest_index_of_equals() -> None:
    batch = batch_of([[0.4, 0.0, 1.0, 0.5, 0.9, 0.1], [1, 0, 0, 0, 0, 0]])
    assert selected(Pods(4, True, 1e-6), batch).kept.tolist() == [1, 2, 4, 5, 6, 7, 8, 9]


def test_pods_loses_no_variance_to_rounding() -> None:
    batch = batch_of([[1e6 + x for x in (0.0, 1e-3, 2e-3, 4e-3)]])
    assert selected(Pods(2, True, 1e-6), batch).kept.tolist() == [0, 3]


@given(batches(), st.integers(1, 9), st.sampled_from(["length", "token_efficiency"]))
def test_gfpo_keeps_the_best_by_its_metric(
    batch: Rollouts, keep: int, metric: Literal["length", "token_efficiency"]
) -> None:
    def merit(i: int) -> float:
        length = int(batch.lengths[i])
        return -length if metric == "length" else float(batch.rewards[i]) / max(length, 1)

    expected = [
        i for group in members(batch) for i in sorted(sorted(group, key=lambda i: (-merit(i), i))[:keep])
    ]
    assert selected(Gfpo(keep, True, 1e-6, metric), batch).kept.tolist() == expected


@given(batches(continuous=True), st.integers(1, 9), st.booleans())
def test_kept_trajectories_are_compared_with_the_kept_alone(
    batch: Rollouts, keep: int, std_normalise: bool
) -> None:
    for selector in (Pods(keep, std_normalise, 1e-6), Gfpo(keep, std_normalise, 1e-6, "length")):
        override = override_of(selected(selector, batch))
        for group in members(batch):
            rewards = {i: float(batch.rewards[i]) for i in group if i in override}
            values = list(rewards.values())
            mean, spread = statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
            for i, reward in rewards.items():
                expected = reward - mean if len(set(values)) > 1 else 0.0
                if std_normalise:
                    expected /= spread + 1e-6
                assert override[i] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(batches(continuous=True), st.sampled_from(["mad", "std", "none"]))
def test_mc_grpo_centres_on_the_median_and_leaves_its_trajectory_out(
    batch: Rollouts, scale: Literal["mad", "std", "none"]
) -> None:
    selection = selected(McGrpo(scale, 1e-3), batch)
    override = override_of(selection)
    for group in members(batch):
        rewards = [float(batch.rewards[i]) for i in group]
        median = statistics.median_low(rewards)
        left_out = [i for i in group if i not in override]
        assert left_out == ([] if len(group) == 1 else [group[rewards.index(median)]])
        divisor = {
            "mad": statistics.median_low(abs(reward - median) for reward in rewards) + 1e-3,
            "std": (statistics.stdev(rewards) if len(rewards) > 1 else 0) + 1e-3,
            "none": 1.0,
        }[scale]
        for i, reward in zip(group, rewards, strict=True):
            if i in override:
                assert override[i] == pytest.approx((reward - median) / divisor, rel=1e-6, abs=1e-9)


def test_mc_grpo_needs_an_odd_number_of_rollouts() -> None:
    assert McGrpo("mad", 1e-3).problem_with(9) is None
    assert "sample an odd number" in (McGrpo("mad", 1e-3).problem_with(8) or "")


@pytest.mark.parametrize("selector", [Pods(5, True, 1e-6), Gfpo(5, True, 1e-6, "length")], ids=repr)
def test_more_than_the_rollouts_cannot_be_kept(selector: Selector) -> None:
    assert selector.problem_with(5) is None
    assert "keep=5 of 4" in (selector.problem_with(4) or "")


@given(batches(), st.integers(0, 99))
def test_dppo_prunes_below_the_mean_alone(batch: Rollouts, seed: int) -> None:
    sizes = np.abs(group_advantages(batch.rewards, batch.offsets, True, 1e-6))
    selection = selected(Dppo(0.9, 1e-4, "sequences"), batch, seed)
    kept = set(selection.kept.tolist())
    for group in members(batch):
        mean = statistics.fmean(float(sizes[i]) for i in group)
        assert all(i in kept for i in group if sizes[i] > mean - 1e-5)
    assert (selection.priority[[i for i in range(batch.n_trajectories) if i not in kept]] == -np.inf).all()


@pytest.mark.parametrize("mean_over", ["sequences", "tokens"])
def test_dppo_leaves_the_expected_gradient_as_it_is(mean_over: Literal["sequences", "tokens"]) -> None:
    """Each trajectory has a gradient of its own; their mean as the objective takes it, over many prunings."""
    rng = np.random.default_rng(0)
    responses = [list(range(int(n))) for n in rng.integers(1, 9, 12)]
    batch = batch_of([[1, 0, 0, 0, 0, 0], [1, 1, 1, 0.5, 1, 0]], responses)
    advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
    gradient = rng.normal(size=(12, 3)) * advantages[:, None]
    if mean_over == "tokens":  # a sum over tokens, to be divided by all tokens
        gradient *= batch.lengths[:, None]
    amount = np.ones(12) if mean_over == "sequences" else batch.lengths
    estimates = []
    for seed in range(2000):
        selection = Dppo(0.7, 1e-4, mean_over).select(batch, advantages, np.random.default_rng(seed))
        assert selection.weight is not None
        total = (selection.weight[:, None] * gradient[selection.kept]).sum(0)
        estimates.append(total / amount[selection.kept].sum())
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (error > 0).all()
    assert (np.abs(np.mean(estimates, axis=0) - gradient.sum(0) / amount.sum()) < 4 * error).all()


@pytest.mark.parametrize(
    "selector", [Pods(2, True, 1e-6), Gfpo(2, True, 1e-6, "length"), McGrpo("mad", 1e-3)], ids=repr
)
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_broken_reward_names_its_question(selector: Selector, broken: float) -> None:
    batch = batch_of([[0.0, 1.0], [1.0, broken]], question_ids=["first", "second"])
    with pytest.raises(ValueError, match="NaN or infinite, in question 'second'"):
        selector.select(batch, np.zeros(4), np.random.default_rng(0))
