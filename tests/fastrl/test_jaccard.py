"""Similarities of token sets are those of Python's sets, for any group size and any token ids."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragged_batches import batch_of, batches, members, random_batch, responses_of

from fastrl.jaccard import jaccard_matrices, set_intersections
from fastrl.rollouts import Rollouts


def similarity_by_definition(left: set[int], right: set[int]) -> float:
    return len(left & right) / len(left | right) if left | right else 1.0


def check_against_sets(batch: Rollouts) -> None:
    sets = [set(response) for response in responses_of(batch)]
    groups = members(batch)
    for group, shared, similarity in zip(
        groups, set_intersections(batch), jaccard_matrices(batch), strict=True
    ):
        assert shared.tolist() == [[len(sets[i] & sets[j]) for j in group] for i in group]
        expected = [[similarity_by_definition(sets[i], sets[j]) for j in group] for i in group]
        assert similarity.tolist() == expected


@given(batches(largest_group=20))
def test_matches_sets(batch: Rollouts) -> None:
    check_against_sets(batch)


@pytest.mark.parametrize("largest_group", [1, 8, 9, 16, 17, 33, 64, 65, 130])
def test_matches_sets_for_any_group_size(largest_group: int) -> None:
    rng = np.random.default_rng(largest_group)
    for _ in range(3):
        check_against_sets(random_batch(rng, 4, largest_group, continuous=False))
    check_against_sets(batch_of([[0.0] * largest_group], [[i, i + 1] for i in range(largest_group)]))


@given(batches(largest_group=12))
def test_symmetric_within_bounds_and_one_with_itself(batch: Rollouts) -> None:
    for similarity in jaccard_matrices(batch):
        assert (similarity == similarity.T).all()
        assert similarity.min() >= 0
        assert similarity.max() <= 1
        assert (np.diagonal(similarity) == 1).all()


def test_two_empty_responses_are_alike_and_differ_from_any_other() -> None:
    (similarity,) = jaccard_matrices(batch_of([[0.0, 0.0, 0.0]], [[], [], [5]]))
    assert similarity.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


@given(
    tokens=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=6),
    padding=st.integers(0, 9),
    data=st.data(),
)
def test_padding_is_ignored_even_where_it_is_a_real_token(
    tokens: list[list[int]], padding: int, data: st.DataObject
) -> None:
    lengths = [data.draw(st.integers(0, 4)) for _ in tokens]
    padded = np.array([row[:n] + [padding] * (4 - n) for row, n in zip(tokens, lengths, strict=True)])
    rewards, sizes = np.zeros(len(tokens)), np.array([len(tokens)])
    batch = Rollouts.from_padded(["q"], padded, np.array(lengths), rewards, sizes)
    assert responses_of(batch) == [row[:n] for row, n in zip(tokens, lengths, strict=True)]
    assert responses_of(batch.packed()) == responses_of(batch)
    check_against_sets(batch)
    check_against_sets(batch.packed())


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 2**40), max_size=5), min_size=1, max_size=9))
def test_huge_token_ids_need_no_huge_table(responses: list[list[int]]) -> None:
    batch = batch_of([[0.0] * len(responses)], [[0]] * len(responses))
    edges = np.cumsum([0, *map(len, responses)])
    tokens = np.array([token for response in responses for token in response], dtype=np.int64)
    check_against_sets(dataclasses.replace(batch, tokens=tokens, token_offsets=edges))


def test_a_negative_token_id_is_refused() -> None:
    batch = batch_of([[0.0, 0.0]], [[3, -100], [4]])
    with pytest.raises(ValueError, match="token id -100 is negative"):
        list(set_intersections(batch))


def test_a_batch_without_tokens_or_without_groups() -> None:
    assert [matrix.tolist() for matrix in jaccard_matrices(batch_of([[0.0], [1.0]]))] == [[[1.0]], [[1.0]]]
    assert list(jaccard_matrices(batch_of([]))) == []
