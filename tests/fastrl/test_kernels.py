"""Both kernels give the same integers, from ragged and padded tokens, of either integer type, uncopied."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batches, members, random_batch, responses_of

import fastrl.jaccard
from fastrl.advantages import group_advantages
from fastrl.jaccard import Kernel, class_intersections, seed_overlaps
from fastrl.rollouts import Rollouts
from fastrl.selectors.mdap import Mdap

HAS_NUMBA = importlib.util.find_spec("numba") is not None
KERNELS: list[Kernel] = ["numpy", "numba"] if HAS_NUMBA else ["numpy"]
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def padded(batch: Rollouts, dtype: type, padding: int) -> Rollouts:
    """The batch as rows with this token as padding, cut out of wider rows as responses are of sequences."""
    texts = responses_of(batch)
    rows = np.full((len(texts), 3 + max(map(len, texts)) + 2), padding, dtype=dtype)
    for row, text in zip(rows, texts, strict=True):
        row[3 : 3 + len(text)] = text
    return Rollouts.from_padded(
        batch.question_ids, rows[:, 3:], [len(text) for text in texts], batch.rewards, batch.group_sizes
    )


def seeds_of(batch: Rollouts, rng: np.random.Generator) -> np.ndarray:
    """For each trajectory a seed of its group; up to two of a group are seeds."""
    seed = np.empty(batch.n_trajectories, dtype=np.int64)
    for group in members(batch):
        choice = rng.choice(group, size=min(2, len(group)), replace=False)
        seed[group.start : group.stop] = rng.choice(choice, size=len(group))
        seed[choice] = choice
    return seed


@each_kernel
@given(batch=batches(largest_group=20), number=st.integers(0, 99), padding=st.sampled_from([0, 3, -100]))
def test_overlaps_with_seeds_are_those_of_sets(
    kernel: Kernel, batch: Rollouts, number: int, padding: int
) -> None:
    seed = seeds_of(batch, np.random.default_rng(number))
    sets = [set(text) for text in responses_of(batch)]
    pairs = [(sets[i], sets[j]) if i != j else (set(), set()) for i, j in enumerate(seed.tolist())]
    for form in (batch, padded(batch, np.int64, padding)):  # int32 and int64
        shared, union = seed_overlaps(form, seed, kernel)
        assert shared.tolist() == [len(a & b) for a, b in pairs]
        assert union.tolist() == [len(a | b) for a, b in pairs]


@each_kernel
@given(batch=batches(largest_group=20), padding=st.sampled_from([3, -100]))
def test_intersections_inside_a_class_are_those_of_sets(
    kernel: Kernel, batch: Rollouts, padding: int
) -> None:
    sets = [set(text) for text in responses_of(batch)]
    label = (np.asarray(batch.rewards) > 0.5).astype(np.int64)
    for form in (batch, padded(batch, np.int64, padding)):
        for group, shared in zip(members(batch), class_intersections(form, label, kernel), strict=True):
            for i, j in itertools.product(range(len(group)), repeat=2):
                if label[group[i]] == label[group[j]]:
                    assert shared[i, j] == len(sets[group[i]] & sets[group[j]])


@pytest.mark.skipif(not HAS_NUMBA, reason="needs the extra numba")
@pytest.mark.parametrize("compare", ["seed", "retained"])
@pytest.mark.parametrize("weight", ["none", "cluster_size"])
def test_numba_selects_the_same_bit_for_bit(compare: str, weight: str) -> None:
    rng = np.random.default_rng(0)
    for largest in (8, 64):
        for _ in range(10):
            batch = random_batch(rng, 12, largest, continuous=False)
            advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
            first, second = (
                Mdap(0.8, compare, 1e-4, weight, False, kernel).select(batch, advantages, rng)  # type: ignore[arg-type]
                for kernel in KERNELS
            )
            assert first.kept.tolist() == second.kept.tolist()
            assert first.reason == second.reason
            assert first.priority.tobytes() == second.priority.tobytes()
            if weight == "cluster_size":
                assert first.weight is not None
                assert second.weight is not None
                assert first.weight.tobytes() == second.weight.tobytes()


@each_kernel
def test_huge_token_ids_are_compared_too(kernel: Kernel) -> None:
    batch = Rollouts.from_ragged(["q"], [0, 2], np.array([2**40, 5, 5, 2**40, 2**40]), [0, 2, 5], [1.0, 1.0])
    assert [values.tolist() for values in seed_overlaps(batch, np.array([0, 0]), kernel)] == [[0, 2], [0, 2]]


def test_without_numba_its_kernel_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastrl.jaccard.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"kernel=numba, but .* install the extra fastrl-suite\[numba\]"):
        Mdap(0.8, "seed", 1e-4, "none", False, "numba")
    assert Mdap(0.8, "seed", 1e-4, "none", False, "numpy").kernel == "numpy"


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_torch_tensors_share_their_memory(dtype: torch.dtype) -> None:
    sequences = torch.tensor([[9, 9, 1, 2, 0], [9, 9, 3, 0, 0]], dtype=dtype)
    responses = sequences[:, 2:]
    rollouts = Rollouts.from_padded(["q"], responses, torch.tensor([2, 1]), torch.tensor([1.0, 0.0]), [2])
    assert responses_of(rollouts) == [[1, 2], [3]]
    flat = Rollouts.from_ragged(["q"], [0, 1], sequences[0], [0, 5], torch.tensor([1.0]))
    sequences[0, 2] = 7
    assert responses_of(rollouts) == [[7, 2], [3]]
    assert responses_of(flat) == [[9, 9, 7, 2, 0]]
    assert rollouts.packed().tokens.tolist() == [7, 2, 3]


def test_rows_that_are_no_rows_in_memory_are_copied() -> None:
    columns = np.array([[1, 2], [3, 4], [5, 6]]).T
    assert responses_of(Rollouts.from_padded(["q"], columns, [3, 1], [0.0, 0.0], [2])) == [[1, 3, 5], [2]]


def test_padded_batches_without_rows_or_without_tokens() -> None:
    assert Rollouts.from_padded([], np.zeros((0, 4), np.int64), [], [], []).packed().tokens.tolist() == []
    empty = Rollouts.from_padded(["q"], np.zeros((2, 0), np.int64), [0, 0], [0.0, 1.0], [2])
    assert responses_of(empty) == responses_of(empty.packed()) == [[], []]


@pytest.mark.parametrize(
    ("tokens", "lengths", "message"),
    [
        (np.zeros((2, 3), np.int64), [1, 4], "lengths of 0 to 3"),
        (np.zeros((2, 3), np.int64), [1], "2 lengths"),
        (np.zeros((2, 3)), [1, 1], "type float64"),
        (np.zeros(3, np.int64), [1], r"shape \(3,\)"),
    ],
)
def test_tokens_and_lengths_that_do_not_fit_are_refused(
    tokens: np.ndarray, lengths: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Rollouts.from_padded(["q"], tokens, lengths, [0.0] * len(lengths), [len(lengths)])
