"""Each rule against a slow one, written from its definition in plain Python, on 10,000 random batches.

The batches have one to three groups of up to seven trajectories, rewards of four levels or continuous ones,
and responses over few token ids, the empty one included.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from fastrl.advantages import advantage_classes, group_advantages
from fastrl.alignment import align
from fastrl.filters.dynamic_sampling import DynamicSampling
from fastrl.filters.greso import Greso
from fastrl.jaccard import seed_overlaps
from fastrl.objectives.dapo_overlong import DapoOverlong
from fastrl.rollouts import Rollouts
from fastrl.schedules.ars import Ars
from fastrl.selectors.cppo import Cppo
from fastrl.selectors.gfpo import Gfpo
from fastrl.selectors.mc_grpo import McGrpo
from fastrl.selectors.mdap import Mdap
from fastrl.selectors.pods import Pods

BATCHES = 10_000
EPSILON = 1e-4
TAUS = (0.3, 0.5, 0.75, 0.8, 0.9)
LEVELS = (0.0, 0.5, 1.0, 1.5)
RNG = np.random.default_rng(0)  # given to every selector, used by none of these
Group = tuple[int, list[float], list[frozenset[int]]]
"""A group's first trajectory, its rewards and its responses' token sets."""


def random_batches(seed: int, continuous: bool = True) -> Iterator[tuple[Rollouts, list[Group]]]:
    """All random numbers are drawn at once: batch by batch they would take longer than the rules."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, BATCHES)
    sizes = rng.integers(1, 8, counts.sum())
    lengths = rng.integers(0, 7, sizes.sum())
    tokens = rng.integers(0, 9, lengths.sum()).astype(np.int32)
    levels = rng.choice(LEVELS, len(lengths))
    fine = levels + rng.random(len(lengths)) * rng.choice([0.0, 1e-4, 1.0], len(lengths))
    group = trajectory = token = 0
    for number, count in enumerate(counts.tolist()):
        offsets = np.concatenate([[0], np.cumsum(sizes[group : group + count])])
        n = int(offsets[-1])
        token_offsets = np.concatenate([[0], np.cumsum(lengths[trajectory : trajectory + n])])
        rewards = (fine if continuous and number % 2 else levels)[trajectory : trajectory + n]
        batch = Rollouts(
            question_ids=("q",) * count,
            offsets=offsets,
            tokens=tokens[token : token + int(token_offsets[-1])],
            token_offsets=token_offsets,
            rewards=rewards,
        )
        flat, edges, values = batch.tokens.tolist(), token_offsets.tolist(), rewards.tolist()
        sets = [frozenset(flat[a:b]) for a, b in itertools.pairwise(edges)]
        yield (
            batch,
            [(a, values[a:b], sets[a:b]) for a, b in itertools.pairwise(offsets.tolist())],
        )
        group, trajectory, token = group + count, trajectory + n, token + int(token_offsets[-1])


def advantages_by_definition(rewards: list[float]) -> list[float]:
    if min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean, spread = statistics.fmean(rewards), statistics.stdev(rewards)
    return [(reward - mean) / (spread + 1e-6) for reward in rewards]


def classes_by_definition(values: list[float], epsilon: float) -> list[list[int]]:
    classes: list[list[int]] = []
    for i in sorted(range(len(values)), key=values.__getitem__):
        if classes and values[i] - values[classes[-1][0]] < epsilon:
            classes[-1].append(i)
        else:
            classes.append([i])
    return classes


def test_advantages() -> None:
    for batch, groups in random_batches(0):
        expected = [value for _, rewards, _ in groups for value in advantages_by_definition(rewards)]
        advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
        assert np.allclose(advantages, expected, rtol=1e-7, atol=1e-9)


def test_advantage_classes() -> None:
    for batch, groups in random_batches(1):
        classes = advantage_classes(batch.rewards, batch.offsets, EPSILON).tolist()
        for start, rewards, _ in groups:
            for number, members in enumerate(classes_by_definition(rewards, EPSILON)):
                assert {classes[start + i] for i in members} == {number}


@pytest.mark.parametrize("compare", ["seed", "retained"])
def test_mdap(compare: str) -> None:
    for number, (batch, groups) in enumerate(random_batches(2)):
        tau = TAUS[number % len(TAUS)]
        exact = Fraction(repr(tau))
        advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
        kept = []
        for start, rewards, sets in groups:
            values = advantages[start : start + len(rewards)].tolist()
            for members in classes_by_definition(values, EPSILON):
                retained: list[int] = []
                for i in sorted(members, key=lambda i: (-abs(values[i]), i)):
                    against = retained if compare == "retained" else retained[:1]
                    if all(differs_enough(sets[i], sets[j], exact, compare) for j in against):
                        retained.append(i)
                kept += [start + i for i in retained]
        mdap = Mdap(tau, compare, EPSILON, "none", False, "numpy")  # type: ignore[arg-type]
        assert mdap.select(batch, advantages, RNG).kept.tolist() == sorted(kept)


def differs_enough(left: frozenset[int], right: frozenset[int], tau: Fraction, compare: str) -> bool:
    union = len(left | right)
    differing = union - len(left & right)
    if compare == "seed":
        return differing * tau.denominator > tau.numerator * union
    return union > 0 and differing * tau.denominator >= tau.numerator * union


def test_overlaps() -> None:
    for batch, groups in random_batches(3):
        seed = np.repeat(batch.offsets[:-1], batch.group_sizes)
        shared, union = seed_overlaps(batch, seed, "numpy")
        for start, _, sets in groups:
            for i, own in enumerate(sets[1:], start=start + 1):
                assert (shared[i], union[i]) == (len(own & sets[0]), len(own | sets[0]))


@pytest.mark.parametrize("scope", ["question", "batch"])
def test_cppo(scope: str) -> None:
    """Largest |A| first; among equals positive and negative in turns, each by index."""
    for number, (batch, groups) in enumerate(random_batches(4)):
        rate = (0.25, 0.5, 0.75)[number % 3]
        advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)
        spans = [(start, len(rewards)) for start, rewards, _ in groups]
        kept = []
        for start, n in spans if scope == "question" else [(0, batch.n_trajectories)]:
            values = advantages[start : start + n].tolist()
            ranking: list[int] = []
            for members in reversed(classes_by_definition([abs(value) for value in values], EPSILON)):
                signs = [
                    sorted(i for i in members if values[i] >= 0),
                    sorted(i for i in members if values[i] < 0),
                ]
                turns = itertools.zip_longest(*signs)
                ranking += [i for turn in turns for i in turn if i is not None]
            kept += [start + i for i in ranking[: max(math.floor(n * (1 - rate)), 1)]]
        cppo = Cppo(rate, EPSILON, scope, False)  # type: ignore[arg-type]
        assert cppo.select(batch, advantages, RNG).kept.tolist() == sorted(kept)


def test_pods() -> None:
    for number, (batch, groups) in enumerate(random_batches(5)):
        keep = 1 + number % 5
        kept = Pods(keep, True, 1e-6).select(batch, batch.rewards, RNG).kept.tolist()
        for start, rewards, _ in groups:
            chosen = [rewards[i - start] for i in kept if start <= i < start + len(rewards)]
            assert len(chosen) == min(keep, len(rewards))
            best = max(map(spread, itertools.combinations(rewards, len(chosen))))
            assert spread(chosen) >= best - 1e-9


def spread(values: list[float] | tuple[float, ...]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def test_gfpo() -> None:
    for number, (batch, groups) in enumerate(random_batches(6)):
        metric = ("length", "token_efficiency")[number % 2]
        lengths = batch.lengths.tolist()
        kept = []
        for start, rewards, _ in groups:
            tokens = lengths[start : start + len(rewards)]
            per_token = [-reward / max(n, 1) for reward, n in zip(rewards, tokens, strict=True)]
            ranking = zip(tokens if metric == "length" else per_token, itertools.count(start), strict=False)
            kept += [i for _, i in sorted(ranking)[:3]]
        gfpo = Gfpo(3, True, 1e-6, metric)  # type: ignore[arg-type]
        assert gfpo.select(batch, batch.rewards, RNG).kept.tolist() == sorted(kept)


def test_mc_grpo() -> None:
    for batch, groups in random_batches(7):
        selection = McGrpo("mad", 1e-3).select(batch, batch.rewards, RNG)
        kept, values = [], []
        for start, rewards, _ in groups:
            median = statistics.median_low(rewards)
            scale = statistics.median_low([abs(reward - median) for reward in rewards]) + 1e-3
            out = rewards.index(median) if len(rewards) > 1 else -1
            kept += [start + i for i in range(len(rewards)) if i != out]
            values += [(reward - median) / scale for i, reward in enumerate(rewards) if i != out]
        assert selection.kept.tolist() == kept
        assert selection.advantage_override is not None
        assert np.allclose(selection.advantage_override, values, rtol=1e-9, atol=1e-12)


def test_alignment() -> None:
    """Round-robin over the groups, each time the unselected one of highest priority."""
    rng = np.random.default_rng(8)
    for batch, groups in random_batches(8):
        n = batch.n_trajectories
        kept = np.flatnonzero(rng.random(n) < 0.5)
        divisor = int(rng.integers(1, 5))
        left = [
            sorted(set(range(s, s + len(r))) - set(kept.tolist()), key=lambda i: (-batch.rewards[i], i))
            for s, r, _ in groups
        ]
        missing = -len(kept) % divisor
        turns = [i for turn in itertools.zip_longest(*left) for i in turn if i is not None]
        if len(turns) < missing:
            continue
        added = align(kept, batch.offsets, batch.rewards, divisor, "trim").added
        assert added.tolist() == turns[:missing]


def test_dynamic_sampling() -> None:
    for batch, groups in random_batches(9, continuous=False):
        accuracy = (batch.rewards >= 1).astype(float)
        mixed = [0 < sum(r >= 1 for r in rewards) < len(rewards) for _, rewards, _ in groups]
        assert DynamicSampling(2, 1.0).accept(batch, accuracy).tolist() == mixed


def test_greso() -> None:
    """z is the trailing run of all-right or all-wrong groups of a question."""
    greso = Greso(0.5, 0.4, 0.01, 0.05, 0.95, 0.01, 0.98, 0.11, 1 / 12, 1 / 6, 20, 1.25, 1.5, 6.0)
    for batch, groups in random_batches(10, continuous=False):
        state, history = greso.initial_state(), ""
        for _, rewards, _ in groups:
            right = [reward >= 1 for reward in rewards]
            history += "e" if all(right) else "h" if not any(right) else "m"
        state = greso.observe(state, batch, (batch.rewards >= 1).astype(float), 1)
        z_easy = len(history) - len(history.rstrip("e"))
        z_hard = len(history) - len(history.rstrip("h"))
        expected = 1 - max(0.5**z_easy * 0.4**z_hard, 0.01)
        assert greso.skip_probability(state, ["q"])[0] == pytest.approx(expected)


def test_ars() -> None:
    rng = np.random.default_rng(11)
    schedule = Ars(8, 2, "ours")
    for steps, groups, epochs in rng.integers(1, 4, (BATCHES, 3)).tolist():
        kept = rng.integers(1, 9, (epochs, steps, groups))
        state, first = schedule.initial_state(), None
        for epoch, counts in enumerate(kept.tolist(), start=1):
            for row in counts:
                state = schedule.observe(state, np.array(row))
            state = schedule.end_epoch(state, epoch / epochs)
            mean = sum(sum(row) / groups for row in counts) / steps
            most = sum(max(row) for row in counts) / steps
            first = (mean + most) / 2 if first is None else first
            now = epoch / epochs * mean + (1 - epoch / epochs) * most
            exact = 8 - max(0.0, first - now)
            if abs(exact % 1 - 0.5) > 1e-9:  # a half is decided by rounding; see test_schedules
                assert schedule.next_n(state) == min(max(math.floor(exact + 0.5), 2), 8)


def test_overlong_penalty() -> None:
    objective = DapoOverlong(0.2, 0.28, 0.0, 1e-6, max_tokens=20, overlong_buffer=4, overlong_weight=0.5)
    lengths = np.random.default_rng(12).integers(0, 30, BATCHES)
    penalty: Callable[[int], float] = lambda n: 0.0 if n <= 16 else (16 - n) / 4 if n <= 20 else -1.0  # noqa: E731
    expected = [1.0 + 0.5 * penalty(length) for length in lengths.tolist()]
    assert objective.shaped_rewards(np.ones(BATCHES), lengths).tolist() == expected
