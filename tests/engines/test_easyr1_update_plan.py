"""How kept trajectories become EasyR1's updates: whole micro-batches on every rank, and none left over."""

from __future__ import annotations

import pytest

from experiments.compose import compose_cell
from fastrl.engines.easyr1.settings import easyr1_settings
from fastrl.engines.easyr1.update_plan import UpdatePlan, rank_multiple


def plan(mode: str, ranks: int, multiple: int) -> UpdatePlan:
    """Of 32 trajectories an update where none is pruned."""
    return UpdatePlan(
        mode=mode, updates=4, mini_batch=32, ranks=ranks, rank_multiple=multiple, exact_sequence_mean=False
    )


@pytest.mark.parametrize(
    ("mode", "ranks", "multiple", "divisor"),
    [
        ("fixed", 1, 8, 8),
        ("fixed", 2, 8, 16),
        ("mini_batch", 1, 2, 32),
        ("mini_batch", 2, 3, 96),
    ],
)
def test_what_is_kept_is_aligned_to(mode: str, ranks: int, multiple: int, divisor: int) -> None:
    assert plan(mode, ranks, multiple).divisor() == divisor


def test_fixed_updates_shrink_and_mini_batches_become_fewer() -> None:
    assert [plan("fixed", 1, 8).updates_of(kept) for kept in (128, 64, 8)] == [4, 4, 4]
    assert [plan("mini_batch", 1, 2).updates_of(kept) for kept in (128, 64, 32)] == [4, 2, 1]


@pytest.mark.parametrize(
    ("dynamic", "update", "experience", "mode", "multiple"),
    [
        (False, 2, 2, "fixed", 8),  # four updates of a micro-batch each
        (False, 2, 16, "fixed", 16),  # and whole micro-batches of log-probs
        (False, 2, 2, "mini_batch", 2),
        (True, 2, 16, "fixed", 4),  # micro-batches by tokens: any number
        (True, 2, 16, "mini_batch", 1),
    ],
)
def test_a_ranks_trajectories_come_in_multiples_of(
    dynamic: bool, update: int, experience: int, mode: str, multiple: int
) -> None:
    values = compose_cell(["engine=easyr1_cpu"])["engine"] | {
        "dynamic_batching": dynamic,
        "micro_batch_update": update,
        "micro_batch_experience": experience,
    }
    assert rank_multiple(easyr1_settings(values), mode, 4) == multiple
