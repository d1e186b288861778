"""MDAP keeps, of the trajectories with equal advantage, those that differ in their tokens."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batch_of, batches, members, random_batch, responses_of, restricted

from fastrl.advantages import group_advantages, zero_variance
from fastrl.jaccard import Kernel
from fastrl.rollouts import Rollouts
from fastrl.selectors.base import Selection
from fastrl.selectors.mdap import Mdap

Compare = Literal["seed", "retained"]
compares = st.sampled_from(["seed", "retained"])
taus = st.sampled_from([0.0, 0.2, 0.25, 0.4, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0])
EPSILON = 1e-4


def advantages_of(batch: Rollouts) -> np.ndarray:
    return group_advantages(batch.rewards, batch.offsets, True, 1e-6)


def selected(
    batch: Rollouts,
    tau: float,
    compare: Compare,
    weight: Literal["none", "cluster_size"] = "none",
    kernel: Kernel = "numpy",
) -> Selection:
    mdap = Mdap(tau, compare, EPSILON, weight, False, kernel)
    return mdap.select(batch, advantages_of(batch), np.random.default_rng(0))


def differential(left: list[int], right: list[int]) -> Fraction:
    union = set(left) | set(right)
    return 1 - Fraction(len(set(left) & set(right)), len(union)) if union else Fraction(0)


def kept_by_definition(batch: Rollouts, tau: float, compare: Compare) -> list[int]:
    """The rule as written, with exact fractions and nothing vectorised."""
    texts, advantages = responses_of(batch), advantages_of(batch)
    exact_tau = Fraction(repr(tau)).limit_denominator(10**9)
    kept = []
    for group in members(batch):
        classes: list[list[int]] = []
        for i in sorted(group, key=lambda i: float(advantages[i])):
            if classes and advantages[i] - advantages[classes[-1][0]] < EPSILON:
                classes[-1].append(i)
            else:
                classes.append([i])
        for members_of_class in classes:
            order = sorted(members_of_class, key=lambda i: (-abs(float(advantages[i])), i))
            retained = [order[0]]
            for i in order[1:]:
                gaps = [differential(texts[i], texts[j]) for j in retained]
                if tau == 0:
                    keeps = True
                elif tau == 1:
                    keeps = False
                elif compare == "seed":
                    keeps = gaps[0] > exact_tau
                else:
                    keeps = min(gaps) >= exact_tau
                if keeps:
                    retained.append(i)
            kept += retained
    return sorted(kept)


@given(batches(), taus, compares)
def test_keeps_what_the_definition_keeps(batch: Rollouts, tau: float, compare: Compare) -> None:
    assert selected(batch, tau, compare).kept.tolist() == kept_by_definition(batch, tau, compare)


@pytest.mark.parametrize("largest_group", [8, 16, 64, 80])
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("compare", ["seed", "retained"])
def test_keeps_what_the_definition_keeps_on_many_larger_batches(
    largest_group: int, continuous: bool, compare: Compare
) -> None:
    rng = np.random.default_rng(largest_group + continuous)
    for _ in range(6):
        batch = random_batch(rng, 10, largest_group, continuous)
        tau = float(rng.choice([0.3, 0.5, 0.75, 0.8, 0.9]))
        assert selected(batch, tau, compare).kept.tolist() == kept_by_definition(batch, tau, compare)


@given(batches(), taus, compares)
def test_every_reward_of_a_group_survives(batch: Rollouts, tau: float, compare: Compare) -> None:
    kept = set(selected(batch, tau, compare).kept.tolist())
    for group in members(batch):
        rewards = {float(batch.rewards[i]) for i in group}
        assert {float(batch.rewards[i]) for i in group if i in kept} == rewards


@given(batches(largest_group=64, most_groups=3), compares)
def test_tau_1_keeps_one_of_each_distinct_advantage_and_tau_0_keeps_all(
    batch: Rollouts, compare: Compare
) -> None:
    advantages = advantages_of(batch)
    distinct = sum(len({float(advantages[i]) for i in group}) for group in members(batch))
    assert len(selected(batch, 1.0, compare).kept) == distinct
    assert selected(batch, 0.0, compare).kept.tolist() == list(range(batch.n_trajectories))


@given(batches())
def test_with_seed_a_larger_tau_never_keeps_more(batch: Rollouts) -> None:
    counts = [len(selected(batch, tau, "seed").kept) for tau in np.linspace(0, 1, 13).tolist()]
    assert counts == sorted(counts, reverse=True)


@given(batches(), taus.filter(lambda tau: 0 < tau < 1))
def test_with_retained_all_kept_pairs_of_a_class_differ_by_tau(batch: Rollouts, tau: float) -> None:
    kept = set(selected(batch, tau, "retained").kept.tolist())
    texts, advantages = responses_of(batch), advantages_of(batch)
    exact_tau = Fraction(repr(tau)).limit_denominator(10**9)
    for group in members(batch):
        inside = [i for i in group if i in kept]
        for i in inside:
            for j in inside:
                if i < j and abs(advantages[i] - advantages[j]) < EPSILON:
                    assert differential(texts[i], texts[j]) >= exact_tau


@given(batches(), taus, compares, st.data())
def test_a_group_does_not_feel_the_others(
    batch: Rollouts, tau: float, compare: Compare, data: st.DataObject
) -> None:
    groups = data.draw(st.permutations(range(batch.n_groups)))[: data.draw(st.integers(1, batch.n_groups))]
    smaller, indices = restricted(batch, groups)
    alone = set(indices[selected(smaller, tau, compare).kept].tolist())
    together = set(selected(batch, tau, compare).kept.tolist())
    assert alone == together & set(indices.tolist())


def test_ties_go_to_the_lowest_index() -> None:
    batch = batch_of([[0, 1, 0, 1]], [[1], [2], [3], [4]])
    assert selected(batch, 1.0, "seed").kept.tolist() == [0, 1]


def test_the_seed_has_the_largest_advantage_of_its_class() -> None:
    batch = batch_of([[0.0, 1.0, 1.00001, -1.0]], [[1], [2], [2], [3]])
    assert selected(batch, 0.5, "seed").kept.tolist() == [0, 2, 3]


@pytest.mark.parametrize(("compare", "kept"), [("seed", [0]), ("retained", [0, 1])])
def test_a_differential_of_exactly_tau_is_pruned_by_seed_and_kept_by_retained(
    compare: Compare, kept: list[int]
) -> None:
    for tau, shared, union in [
        (0.8, 1, 5),
        (0.8, 3, 15),
        (0.7, 3, 10),
        (0.9, 7, 70),
        (0.6, 14, 35),
        (0.55, 9, 20),
    ]:
        left, right = list(range(shared)), list(range(union))
        batch = batch_of([[1.0, 1.0]], [left, right])
        assert differential(left, right) == Fraction(repr(tau))
        assert selected(batch, tau, compare).kept.tolist() == kept


def test_retained_compares_with_all_kept_ones_and_seed_with_the_first_alone() -> None:
    batch = batch_of([[1.0, 1.0, 1.0]], [[1], [2], [2]])
    assert selected(batch, 0.5, "seed").kept.tolist() == [0, 1, 2]
    assert selected(batch, 0.5, "retained").kept.tolist() == [0, 1]


@given(taus.filter(lambda tau: tau > 0), compares)
def test_of_empty_responses_one_is_kept(tau: float, compare: Compare) -> None:
    assert selected(batch_of([[1.0, 1.0, 1.0], [0.0, 1.0]]), tau, compare).kept.tolist() == [0, 3, 4]


@given(batches(), taus, compares)
def test_cluster_sizes_add_up_to_the_class(batch: Rollouts, tau: float, compare: Compare) -> None:
    selection = selected(batch, tau, compare, "cluster_size")
    assert selection.weight is not None
    assert selection.kept.tolist() == selected(batch, tau, compare).kept.tolist()
    assert selection.weight.min() >= 1
    for group in members(batch):
        for reward in {float(batch.rewards[i]) for i in group}:
            same = [i for i in group if batch.rewards[i] == reward]
            assert selection.weight[np.isin(selection.kept, same)].sum() == len(same)


def test_a_pruned_trajectory_counts_for_the_seed_or_for_the_most_similar_retained_one() -> None:
    batch = batch_of([[1.0, 1.0, 1.0]], [[1, 2, 3, 4], [3, 4, 5, 6, 7], [4, 5, 6, 7]])
    retained = selected(batch, 0.7, "retained", "cluster_size")
    assert retained.kept.tolist() == [0, 1]
    assert retained.weight is not None
    assert retained.weight.tolist() == [1, 2]
    seed = selected(batch, 0.9, "seed", "cluster_size")
    assert seed.weight is not None
    assert seed.weight.tolist() == [3]


@given(batches(), compares)
def test_constant_groups_keep_one_or_are_dropped_for_good(batch: Rollouts, compare: Compare) -> None:
    constant = zero_variance(batch.rewards, batch.offsets)
    mdap = Mdap(0.8, compare, EPSILON, "cluster_size", True, "numpy")
    selection = mdap.select(batch, advantages_of(batch), np.random.default_rng(0))
    keeping = set(selected(batch, 0.8, compare).kept.tolist())
    for group, drop in zip(members(batch), constant, strict=True):
        inside = keeping & set(group)
        assert inside
        assert set(selection.kept.tolist()) & set(group) == (set() if drop else inside)
        for i in group:
            assert (selection.reason[i] == "zero_variance") == bool(drop)
            assert (selection.priority[i] == -np.inf) == bool(drop)
    assert selection.weight is not None
    assert len(selection.weight) == len(selection.kept)
