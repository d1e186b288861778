"""Advantages are the group's standardised rewards, and classes of equal advantage do not depend on order."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batch_of, batches, members, restricted

from fastrl.advantages import advantage_classes, group_advantages, zero_variance
from fastrl.rollouts import Rollouts


@given(batches(largest_group=64, continuous=True))
def test_advantages_are_deviations_in_units_of_the_sample_standard_deviation(batch: Rollouts) -> None:
    advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
    for group in members(batch):
        rewards = [float(batch.rewards[i]) for i in group]
        mean = statistics.fmean(rewards)
        spread = statistics.stdev(rewards) if len(rewards) > 1 else 0.0
        expected = [(reward - mean) / (spread + 1e-6) if len(set(rewards)) > 1 else 0.0 for reward in rewards]
        assert advantages[group.start : group.stop].tolist() == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(batches(largest_group=64, continuous=True))
def test_without_normalisation_advantages_are_differences_to_the_mean(batch: Rollouts) -> None:
    advantages = group_advantages(batch.rewards, batch.offsets, False, 0.0)
    for group in members(batch):
        rewards = [float(batch.rewards[i]) for i in group]
        expected = [reward - statistics.fmean(rewards) for reward in rewards]
        assert advantages[group.start : group.stop].tolist() == pytest.approx(expected, abs=1e-9)


@given(
    reward=st.floats(-1e4, 1e4, width=16),
    n=st.integers(1, 64),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    normalised=st.booleans(),
)
def test_constant_rewards_give_exactly_zero(reward: float, n: int, dtype: type, normalised: bool) -> None:
    batch = batch_of([[reward] * n, [0.0, 1.0]], dtype=dtype)
    advantages = group_advantages(batch.rewards, batch.offsets, normalised, 1e-6)
    assert (advantages[:n] == 0).all()
    assert (advantages[n:] != 0).all()


def test_constant_rewards_whose_mean_rounds_are_zero_too() -> None:
    rewards = np.full(7, 0.1)
    assert np.add.reduceat(rewards, [0])[0] / 7 != rewards[0]
    assert (group_advantages(rewards, np.array([0, 7]), True, 1e-6) == 0).all()


def test_one_right_of_eight() -> None:
    advantages = group_advantages(np.eye(8)[3], np.array([0, 8]), True, 1e-6)
    assert advantages[3] == pytest.approx(2.4749, abs=1e-4)
    assert np.delete(advantages, 3) == pytest.approx(np.full(7, -0.3536), abs=1e-4)


@given(batches(continuous=True), st.data())
def test_a_group_does_not_feel_the_others(batch: Rollouts, data: st.DataObject) -> None:
    groups = data.draw(st.permutations(range(batch.n_groups)))[: data.draw(st.integers(1, batch.n_groups))]
    smaller, indices = restricted(batch, groups)
    whole = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
    assert (
        group_advantages(smaller.rewards, smaller.offsets, True, 1e-6).tobytes() == whole[indices].tobytes()
    )


@given(batches())
def test_equal_rewards_of_a_group_have_bit_equal_advantages(batch: Rollouts) -> None:
    advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
    for group in members(batch):
        assert len({float(advantages[i]) for i in group}) == len({float(batch.rewards[i]) for i in group})


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_a_broken_reward_names_its_question(broken: float) -> None:
    batch = batch_of([[0.0, 1.0], [1.0, broken, 0.0], [broken]], question_ids=["first", "second", "third"])
    with pytest.raises(ValueError, match=r"2 of 6 rewards are NaN or infinite, in group 1, group 2"):
        group_advantages(batch.rewards, batch.offsets, True, 1e-6)
    with pytest.raises(ValueError, match=r"question 'second', question 'third'"):
        group_advantages(batch.rewards, batch.offsets, True, 1e-6, batch.question_ids)


def test_an_empty_group_is_refused_and_an_empty_batch_is_not() -> None:
    with pytest.raises(ValueError, match="group 1 holds no trajectory"):
        group_advantages(np.ones(2), np.array([0, 2, 2]), True, 1e-6)
    assert len(group_advantages(np.zeros(0), np.array([0]), True, 1e-6)) == 0
    assert len(zero_variance(np.zeros(0), np.array([0]))) == 0
    assert len(advantage_classes(np.zeros(0), np.array([0]), 1e-4)) == 0


@given(batches())
def test_zero_variance_is_one_distinct_reward(batch: Rollouts) -> None:
    expected = [len({float(batch.rewards[i]) for i in group}) == 1 for group in members(batch)]
    assert zero_variance(batch.rewards, batch.offsets).tolist() == expected


def classes_by_definition(values: list[float], epsilon: float) -> list[int]:
    classes, number, first = [0] * len(values), -1, -float("inf")
    for i in sorted(range(len(values)), key=lambda i: values[i]):
        if values[i] - first >= epsilon:
            number, first = number + 1, values[i]
        classes[i] = number
    return classes


close_values = st.lists(
    st.one_of(st.integers(0, 8).map(lambda i: i / 4), st.integers(-30, 30).map(lambda i: i * 0.3e-4)),
    min_size=1,
    max_size=64,
)


@given(st.lists(close_values, min_size=1, max_size=4), st.sampled_from([1e-4, 1e-2, 0.5]))
def test_classes_are_split_where_the_gap_to_the_first_member_reaches_epsilon(
    groups: list[list[float]], epsilon: float
) -> None:
    batch = batch_of(groups)
    expected = [number for group in groups for number in classes_by_definition(group, epsilon)]
    assert advantage_classes(batch.rewards, batch.offsets, epsilon).tolist() == expected


@given(close_values, st.randoms(use_true_random=False))
def test_classes_do_not_depend_on_the_order_of_trajectories(values: list[float], random: object) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    offsets = np.array([0, len(values)])
    classes = advantage_classes(np.array(values), offsets, 1e-4)
    assert advantage_classes(np.array(values)[order], offsets, 1e-4).tolist() == classes[order].tolist()


def test_a_long_chain_of_small_gaps_is_cut_to_the_width() -> None:
    chain = np.arange(64) * 0.4e-4
    classes = advantage_classes(chain, np.array([0, 64]), 1e-4)
    assert [np.ptp(chain[classes == number]) < 1e-4 for number in range(classes.max() + 1)] == [True] * 22


@pytest.mark.parametrize("epsilon", [0.0, -1e-4, float("nan")])
def test_a_width_that_is_not_positive_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        advantage_classes(np.zeros(2), np.array([0, 2]), epsilon)
