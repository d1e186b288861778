"""Alignment brings the kept trajectories to a multiple of the divisor, fairly and at the lowest cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrl.alignment import (
    Alignment,
    AlignmentError,
    align,
    aligned_advantages,
    divisor_for,
    split_mini_batches,
    split_updates,
)
from fastrl.selectors.base import Selection


@dataclass(frozen=True)
class Case:
    offsets: np.ndarray
    priority: np.ndarray
    kept: np.ndarray
    divisor: int

    def group(self, trajectory: int) -> int:
        return int(np.searchsorted(self.offsets, trajectory, side="right")) - 1

    def per_group(self, trajectories: np.ndarray) -> list[int]:
        groups = [self.group(i) for i in trajectories]
        return [groups.count(q) for q in range(len(self.offsets) - 1)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=6))
    total = sum(sizes)
    levels = draw(st.binary(min_size=total, max_size=total))
    kept = draw(st.binary(min_size=total, max_size=total))
    return Case(
        offsets=np.cumsum([0, *sizes]),
        priority=np.array([level % 4 / 2 for level in levels]),
        kept=np.flatnonzero([flag % 2 for flag in kept]),
        divisor=draw(st.integers(1, 24)),
    )


def filled_by_definition(case: Case) -> list[int]:
    """The added trajectories, one by one as the rule is written; stops when no candidate is left."""
    kept, added = set(case.kept.tolist()), []
    spans = [range(int(a), int(b)) for a, b in zip(case.offsets[:-1], case.offsets[1:], strict=True)]
    while len(kept) % case.divisor and any(i not in kept for span in spans for i in span):
        for span in spans:
            candidates = [i for i in span if i not in kept]
            if len(kept) % case.divisor and candidates:
                added.append(max(candidates, key=lambda i: (case.priority[i], -i)))
                kept.add(added[-1])
    return added


@given(cases())
def test_fills_round_robin_by_priority_then_index(case: Case) -> None:
    expected = filled_by_definition(case)
    possible = (len(case.kept) + len(expected)) % case.divisor == 0
    if not possible:
        with pytest.raises(AlignmentError, match="kept trajectories need"):
            align(case.kept, case.offsets, case.priority, case.divisor, "error")
        return
    alignment = align(case.kept, case.offsets, case.priority, case.divisor, "error")
    assert alignment.added.tolist() == expected
    assert alignment.kept.tolist() == sorted([*case.kept.tolist(), *expected])
    assert len(alignment.trimmed) == 0


@given(cases(), st.sampled_from(["error", "trim"]))
def test_result_is_a_multiple_and_adds_fewer_than_the_divisor_and_only_unselected(
    case: Case, policy: str
) -> None:
    try:
        alignment = align(case.kept, case.offsets, case.priority, case.divisor, policy)  # type: ignore[arg-type]
    except AlignmentError:
        assert case.offsets[-1] < -(-len(case.kept) // case.divisor) * case.divisor
        return
    assert len(alignment.kept) % case.divisor == 0
    assert len(alignment.added) < case.divisor
    assert not set(alignment.added.tolist()) & set(case.kept.tolist())
    assert sorted(set(alignment.kept.tolist())) == alignment.kept.tolist()
    expected = (set(case.kept.tolist()) | set(alignment.added.tolist())) - set(alignment.trimmed.tolist())
    assert set(alignment.kept.tolist()) == expected


@given(cases())
def test_fair_to_within_one_among_groups_that_have_candidates_left(case: Case) -> None:
    alignment = align_or_none(case)
    if alignment is None:
        return
    added, kept = case.per_group(alignment.added), case.per_group(alignment.kept)
    open_groups = [q for q, size in enumerate(np.diff(case.offsets)) if kept[q] < size]
    if open_groups:
        assert max(added) - min(added[q] for q in open_groups) <= 1


def align_or_none(case: Case) -> Alignment | None:
    try:
        return align(case.kept, case.offsets, case.priority, case.divisor, "error")
    except AlignmentError:
        return None


@given(cases())
def test_trimming_drops_the_surplus_of_lowest_priority_and_empties_no_group_needlessly(case: Case) -> None:
    surplus = len(case.kept) % case.divisor
    if align_or_none(case) is not None or surplus == len(case.kept):
        return
    alignment = align(case.kept, case.offsets, case.priority, case.divisor, "trim")
    assert len(alignment.trimmed) == surplus
    assert len(alignment.added) == 0
    before, after = case.per_group(case.kept), case.per_group(alignment.kept)
    emptied = [q for q in range(len(before)) if before[q] and not after[q]]
    if emptied:  # only when every group is down to one
        assert max(after) == 1
    else:
        for q in range(len(before)):
            dropped = [case.priority[i] for i in alignment.trimmed if case.group(i) == q]
            left = [case.priority[i] for i in alignment.kept if case.group(i) == q]
            assert not dropped or max(dropped) <= min(left)


def test_trimming_spares_the_last_of_a_group_even_if_its_priority_is_lowest() -> None:
    alignment = align(np.arange(4), np.array([0, 1, 4]), np.array([0.1, 3.0, 2.0, 4.0]), 3, "trim")
    assert alignment.trimmed.tolist() == [2]


def test_trimming_takes_the_highest_index_of_equals() -> None:
    alignment = align(np.arange(5), np.array([0, 3, 5]), np.array([1.0, 1.0, 1.0, 2.0, 2.0]), 4, "trim")
    assert alignment.trimmed.tolist() == [2]


def test_trimming_to_nothing_is_an_error() -> None:
    with pytest.raises(
        AlignmentError, match="2 kept trajectories need 2 more for a multiple of 4, and only 1 "
    ):
        align(np.arange(2), np.array([0, 3]), np.zeros(3), 4, "trim")


def test_priority_of_minus_infinity_is_never_added() -> None:
    priority = np.array([0.5, -np.inf, -np.inf, 0.1])
    assert align(np.array([0]), np.array([0, 2, 4]), priority, 2, "error").added.tolist() == [3]
    with pytest.raises(AlignmentError):
        align(np.array([0]), np.array([0, 2, 4]), priority, 3, "error")


def test_nothing_kept_stays_nothing() -> None:
    assert len(align(np.zeros(0, dtype=np.int64), np.array([0, 2]), np.ones(2), 4, "error").kept) == 0


@given(cases())
def test_kept_advantages_are_bit_identical_without_weights(case: Case) -> None:
    alignment = align_or_none(case)
    if alignment is None:
        return
    advantages = np.random.default_rng(0).standard_normal(len(case.priority))
    selection = Selection(case.kept, case.priority, ("",) * len(case.priority))
    assert (
        aligned_advantages(selection, alignment, advantages).tobytes() == advantages[alignment.kept].tobytes()
    )


def test_weights_and_overrides_reach_the_selected_and_not_the_back_filled() -> None:
    advantages = np.array([1.0, 2.0, 3.0, 4.0])
    alignment = align(np.array([1, 2]), np.array([0, 4]), np.abs(advantages), 3, "error")
    weighted = Selection(np.array([1, 2]), np.abs(advantages), ("",) * 4, weight=np.array([2.0, 10.0]))
    assert aligned_advantages(weighted, alignment, advantages).tolist() == [4.0, 30.0, 4.0]
    replaced = Selection(
        np.array([1, 2]), np.abs(advantages), ("",) * 4, advantage_override=np.array([-1.0, -2.0])
    )
    assert aligned_advantages(replaced, alignment, advantages).tolist() == [-1.0, -2.0, 4.0]
    assert advantages.tolist() == [1.0, 2.0, 3.0, 4.0]


@given(n=st.integers(0, 200), updates=st.integers(1, 40))
def test_updates_are_as_even_as_possible_and_none_is_empty(n: int, updates: int) -> None:
    parts = split_updates(n, updates)
    assert [len(range(n)[part]) for part in parts] == [
        len(part) for part in np.array_split(np.arange(n), updates) if len(part)
    ]
    assert [i for part in parts for i in range(n)[part]] == list(range(n))


@given(size=st.integers(1, 40), count=st.integers(0, 9), extra=st.integers(1, 39))
def test_mini_batches_are_equal_or_refused(size: int, count: int, extra: int) -> None:
    parts = split_mini_batches(count * size, size)
    assert [i for part in parts for i in range(count * size)[part]] == list(range(count * size))
    assert {len(range(count * size)[part]) for part in parts} <= {size}
    if extra % size:
        with pytest.raises(AlignmentError, match="align them first"):
            split_mini_batches(count * size + extra, size)


@given(ranks=st.integers(1, 8), updates=st.integers(1, 16), case=cases())
def test_every_rank_gets_the_same_number_in_every_update(ranks: int, updates: int, case: Case) -> None:
    divisor = divisor_for(
        "data_parallel", mini_batch_questions=1, initial_rollouts=8, data_parallel=ranks, updates=updates
    )
    case = Case(case.offsets, case.priority, case.kept, divisor)
    alignment = align_or_none(case)
    if alignment is None or not len(alignment.kept):
        return
    parts = split_updates(len(alignment.kept), updates)
    assert len(parts) == updates
    assert {len(alignment.kept[part]) % ranks for part in parts} == {0}
    assert len({len(alignment.kept[part]) for part in parts}) == 1


def test_both_divisors() -> None:
    settings = {"mini_batch_questions": 8, "initial_rollouts": 8, "data_parallel": 4, "updates": 16}
    assert divisor_for("mini_batch", **settings) == 64
    assert divisor_for("data_parallel", **settings) == 64 // 4 * 4
    with pytest.raises(
        AlignmentError, match="3 questions x 2 rollouts = 6 trajectories does not divide over 4"
    ):
        divisor_for("mini_batch", mini_batch_questions=3, initial_rollouts=2, data_parallel=4, updates=1)
