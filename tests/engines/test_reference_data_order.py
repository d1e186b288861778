"""Every pass visits every question once, in an order that depends on nothing but seed and pass."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastrl.engines.reference.data_order import DataPosition, draw_questions

START = DataPosition(epoch=0, used=0)


@given(
    size=st.integers(1, 12),
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    seed=st.integers(0, 2**32),
)
def test_draws_run_through_whole_passes(size: int, counts: list[int], seed: int) -> None:
    position, drawn = START, []
    for count in counts:
        part, position = draw_questions(position, count, size, seed)
        assert len(part) == count
        drawn += part.tolist()
    assert (position.epoch, position.used) == divmod(sum(counts), size)
    for start in range(0, len(drawn) - size + 1, size):
        assert sorted(drawn[start : start + size]) == list(range(size))
    at_once, _ = draw_questions(START, sum(counts), size, seed)
    assert at_once.tolist() == drawn


def test_passes_and_seeds_differ() -> None:
    first, _ = draw_questions(START, 40, 20, seed=0)
    other, _ = draw_questions(START, 40, 20, seed=1)
    assert not np.array_equal(first[:20], first[20:])
    assert not np.array_equal(first, other)
