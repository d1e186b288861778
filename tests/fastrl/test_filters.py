"""Prompt filters: which visits are skipped, which groups count, how many questions a refill draws."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batch_of, batches, members

from fastrl.filters import FILTERS
from fastrl.filters.all import AllPrompts
from fastrl.filters.base import PromptFilter
from fastrl.filters.dynamic_sampling import DynamicSampling
from fastrl.filters.greso import Greso
from fastrl.filters.greso_absolute import GresoAbsolute
from fastrl.filters.greso_ema import GresoEma
from fastrl.rollouts import Rollouts
from fastrl.schedules.base import State

GRESO = Greso(
    p_easy=0.5,
    p_hard=0.4,
    p_step=0.01,
    p_min=0.05,
    p_max=0.95,
    min_keep=0.01,
    easy_at_least=0.98,
    hard_at_most=0.11,
    target_easy=1 / 12,
    target_hard=1 / 6,
    max_draws=20,
    first_draw=1.5,
    refill_margin=1.25,
    max_refill=6.0,
)
ABSOLUTE = GresoAbsolute(
    **{
        field.name: getattr(GRESO, field.name)
        for field in dataclasses.fields(GRESO)
        if field.name not in ("first_draw", "max_refill")
    },
    draw_questions=384,
    least_questions=64,
)
EMA = GresoEma(beta=0.5, margin=0.05, max_skipped=0.2, max_draws=5)
FILTERS_TRIED: dict[str, PromptFilter] = {
    "all": AllPrompts(),
    "dynamic_sampling": DynamicSampling(max_draws=20, oversample=1.5),
    "greso": GRESO,
    "greso_absolute": ABSOLUTE,
    "greso_ema": EMA,
}


def visit(
    prompt_filter: PromptFilter, state: State, question: str, right: float, n: int = 8, epoch: int = 1
) -> State:
    """One sampled group of a question, a share of whose answers is right."""
    accuracy = (np.arange(n) < right * n).astype(float)
    return prompt_filter.observe(state, batch_of([[0.0] * n], question_ids=[question]), accuracy, epoch)


def test_every_filter_is_tried_here() -> None:
    assert set(FILTERS_TRIED) == set(FILTERS)


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_contract(name: str) -> None:
    prompt_filter = FILTERS_TRIED[name]

    @given(st.lists(batches(), min_size=1, max_size=4), st.integers(1, 300), st.integers(0, 9))
    def check(draws: list[Rollouts], missing: int, seed: int) -> None:
        state = prompt_filter.initial_state()
        stored = state
        for epoch, batch in enumerate(draws):
            accuracy = (batch.rewards >= 1).astype(float)
            before = json.dumps(state)
            sampled = prompt_filter.plan(state, batch.question_ids, epoch, np.random.default_rng(seed))
            assert sampled.dtype == bool
            assert len(sampled) == batch.n_groups
            accepted = prompt_filter.accept(batch, accuracy)
            assert accepted.dtype == bool
            assert len(accepted) == batch.n_groups
            assert prompt_filter.next_draw(state, missing) >= missing
            following = prompt_filter.end_step(prompt_filter.observe(state, batch, accuracy, epoch), epoch)
            assert json.dumps(state) == before  # nothing changed in place
            # A checkpoint in between changes nothing that follows.
            stored = json.loads(json.dumps(stored))
            again = prompt_filter.plan(stored, batch.question_ids, epoch, np.random.default_rng(seed))
            assert again.tolist() == sampled.tolist()
            stored = prompt_filter.end_step(prompt_filter.observe(stored, batch, accuracy, epoch), epoch)
            assert json.dumps(stored) == json.dumps(following)
            state = following

    check()
    assert prompt_filter.max_draws >= 1
    assert isinstance(prompt_filter.initial_state()["version"], int)


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_an_empty_draw_is_no_trouble(name: str) -> None:
    prompt_filter, empty = FILTERS_TRIED[name], batch_of([])
    state = prompt_filter.initial_state()
    assert len(prompt_filter.plan(state, [], 1, np.random.default_rng(0))) == 0
    assert len(prompt_filter.accept(empty, np.zeros(0))) == 0
    assert prompt_filter.observe(state, empty, np.zeros(0), 1) == state
    assert prompt_filter.end_step(state, 1) == state


@given(batches())
def test_groups_of_one_accuracy_are_refused_whatever_the_format_bonus(batch: Rollouts) -> None:
    accuracy = (batch.rewards >= 1).astype(float)
    mixed = [0 < sum(accuracy[i] for i in group) < len(group) for group in members(batch)]
    for prompt_filter in (FILTERS_TRIED["dynamic_sampling"], GRESO):
        assert prompt_filter.accept(batch, accuracy).tolist() == mixed
    assert AllPrompts().accept(batch, accuracy).all()


@pytest.mark.parametrize("name", ["dynamic_sampling", "greso"])
def test_a_broken_accuracy_names_its_question(name: str) -> None:
    batch = batch_of([[0.0], [0.0, 0.0]], question_ids=["first", "second"])
    with pytest.raises(ValueError, match="1 of 3 accuracies are NaN or infinite, in question 'second'"):
        FILTERS_TRIED[name].accept(batch, np.array([0.0, 1.0, np.nan]))


def test_dynamic_sampling_draws_a_multiple_of_what_is_missing() -> None:
    prompt_filter = DynamicSampling(max_draws=3, oversample=1.5)
    assert [prompt_filter.next_draw({}, missing) for missing in (1, 2, 32)] == [2, 3, 48]


shares = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=8)


@given(shares, st.sampled_from([1, 2, 3, 8, 16, 64]))
def test_greso_skips_by_the_trailing_run_of_easy_or_hard_groups(history: list[float], n: int) -> None:
    state = GRESO.initial_state()
    for step, right in enumerate(history):
        state = visit(GRESO, state, "q", right, n)
        if step % 2:
            state = {**GRESO.end_step(state, 1), "p_easy": GRESO.p_easy, "p_hard": GRESO.p_hard}
    outcomes = [float(np.mean(np.arange(n) < right * n)) for right in history]
    expected = 0.0
    for outcome, p in ((1.0, GRESO.p_easy), (0.0, GRESO.p_hard)):
        z = next((i for i, one in enumerate(reversed(outcomes)) if one != outcome), len(outcomes))
        expected += 1 - max(p**z, 0.01) if z else 0.0
    assert GRESO.skip_probability(state, ["q", "new"]).tolist() == pytest.approx([expected, 0.0])


@given(shares)
def test_greso_never_skips_a_mixed_or_new_question(history: list[float]) -> None:
    state = GRESO.initial_state()
    for right in [*history, 0.5]:
        state = visit(GRESO, state, "q", right)
    for seed in range(20):
        assert GRESO.plan(state, ["q", "new"], 1, np.random.default_rng(seed)).all()


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_greso_skips_more_surely_the_longer_the_run_but_never_surely(right: float) -> None:
    state, probabilities = GRESO.initial_state(), []
    for _ in range(12):
        probabilities.append(float(GRESO.skip_probability(state, ["q"])[0]))
        state = visit(GRESO, state, "q", right)
    assert probabilities == sorted(probabilities)
    assert probabilities[0] == 0
    assert probabilities[-1] == 0.99


def test_greso_skips_as_often_as_its_probability_says() -> None:
    state = visit(GRESO, visit(GRESO, GRESO.initial_state(), "q", 1.0), "q", 1.0)
    skipped = ~GRESO.plan(state, ["q"] * 4000, 1, np.random.default_rng(0))
    assert skipped.mean() == pytest.approx(0.75, abs=0.03)


def test_greso_judges_every_answer_so_large_groups_are_not_hard_for_one_right_one() -> None:
    state = visit(GRESO, GRESO.initial_state(), "q", 1 / 64, n=64)
    assert GRESO.skip_probability(state, ["q"]).tolist() == [0.0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=150))
def test_greso_adapts_p_within_its_bounds(steps: list[tuple[int, int, int]]) -> None:
    state = GRESO.initial_state()
    p_easy, p_hard = GRESO.p_easy, GRESO.p_hard
    for epoch, easy, hard in steps:
        groups = [[1.0, 1.0]] * easy + [[0.0, 0.0]] * hard + [[0.0, 1.0]] * 10
        accuracy = np.array([value for group in groups for value in group])
        state = GRESO.end_step(GRESO.observe(state, batch_of(groups), accuracy, epoch), epoch)
        if epoch > 0:
            p_easy = max(p_easy - 0.01, 0.05) if easy / len(groups) >= 1 / 12 else min(p_easy + 0.01, 0.95)
            p_hard = max(p_hard - 0.01, 0.05) if hard / len(groups) >= 1 / 6 else min(p_hard + 0.01, 0.95)
        assert (state["p_easy"], state["p_hard"]) == (p_easy, p_hard)
        assert 0.05 <= min(p_easy, p_hard) <= max(p_easy, p_hard) <= 0.95


def test_greso_counts_all_draws_of_a_step_and_a_step_without_samples_changes_nothing() -> None:
    state = GRESO.initial_state()
    for _ in range(5):
        state = visit(GRESO, state, "q", 0.5)
    state = visit(GRESO, state, "r", 1.0)
    assert GRESO.end_step(state, 1)["p_easy"] == pytest.approx(0.49)  # 1 of 6 is above 1 of 12
    assert GRESO.end_step(GRESO.initial_state(), 1)["p_easy"] == 0.5


@given(missing=st.integers(1, 300), mixed=st.integers(0, 20), constant=st.integers(0, 20))
def test_greso_refills_for_the_share_of_useless_groups_and_is_bounded(
    missing: int, mixed: int, constant: int
) -> None:
    state = GRESO.initial_state()
    assert GRESO.next_draw(state, missing) == int(np.ceil(1.5 * missing))
    if not mixed + constant:
        return
    groups = [[0.0, 1.0]] * mixed + [[1.0, 1.0]] * constant
    accuracy = np.array([value for group in groups for value in group])
    state = GRESO.observe(state, batch_of(groups), accuracy, 1)
    wanted = missing * 1.25 * (mixed + constant) / mixed if mixed else float("inf")
    assert GRESO.next_draw(state, missing) == pytest.approx(min(wanted, 6 * missing), abs=1)
    assert GRESO.next_draw(GRESO.end_step(state, 1), missing) == int(np.ceil(1.5 * missing))


@pytest.mark.parametrize(
    ("missing", "mixed", "constant", "drawn"),
    [
        (256, 10, 10, 384),
        (100, 10, 0, 125),
        (100, 10, 30, 384),
        (10, 1, 1, 64),
        (10, 0, 1, 384),
        (500, 1, 0, 500),
    ],
)
def test_greso_with_the_official_sizes(missing: int, mixed: int, constant: int, drawn: int) -> None:
    state = ABSOLUTE.initial_state()
    assert ABSOLUTE.next_draw(state, 256) == 384
    groups = [[0.0, 1.0]] * mixed + [[1.0, 1.0]] * constant
    accuracy = np.array([value for group in groups for value in group])
    assert ABSOLUTE.next_draw(ABSOLUTE.observe(state, batch_of(groups), accuracy, 1), missing) == drawn


def test_ema_skips_the_most_extreme_questions_up_to_its_share() -> None:
    state = EMA.initial_state()
    names = [f"q{i}" for i in range(10)]
    for name, right in zip(names, [1, 0, 1, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 0.5], strict=True):
        state = visit(EMA, state, name, right, epoch=0)
    state = visit(EMA, state, "q0", 15 / 16, n=16, epoch=0)  # average 0.97: extreme, but less so
    sampled = EMA.plan(state, names, 1, np.random.default_rng(0))
    assert [name for name, take in zip(names, sampled, strict=True) if not take] == ["q1", "q2"]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=40), st.floats(0, 0.99))
def test_ema_never_skips_more_than_its_share(rights: list[float], most: float) -> None:
    ema = dataclasses.replace(EMA, max_skipped=most)
    state, names = ema.initial_state(), [f"q{i}" for i in range(len(rights))]
    for name, right in zip(names, rights, strict=True):
        state = visit(ema, state, name, right, epoch=0)
    sampled = ema.plan(state, names, 1, np.random.default_rng(0))
    assert (~sampled).sum() <= most * len(names) + 1e-6
    assert (~sampled).sum() == min(int(most * len(names) + 1e-9), sum(right != 0.5 for right in rights))


def test_ema_is_a_moving_average() -> None:
    state = EMA.initial_state()
    for right in (1.0, 0.0, 0.5):
        state = visit(EMA, state, "q", right)
    assert state["seen"]["q"][0] == ((1.0 + 0.0) / 2 + 0.5) / 2


def test_ema_leaves_no_question_out_for_two_epochs_in_a_row() -> None:
    ema = dataclasses.replace(EMA, max_skipped=0.9)
    state = visit(ema, ema.initial_state(), "q", 1.0, epoch=0)
    names = ["q", "other"]
    assert ema.plan(state, names, 1, np.random.default_rng(0)).tolist() == [False, True]
    assert ema.plan(state, names, 2, np.random.default_rng(0)).tolist() == [True, True]


@pytest.mark.parametrize(
    ("prompt_filter", "field", "value"),
    [
        (FILTERS_TRIED["dynamic_sampling"], "max_draws", 0),
        (FILTERS_TRIED["dynamic_sampling"], "oversample", 0.5),
        (GRESO, "p_easy", 0.99),
        (GRESO, "p_step", -0.1),
        (GRESO, "hard_at_most", 0.99),
        (GRESO, "max_draws", 0),
        (GRESO, "first_draw", 0.5),
        (GRESO, "max_refill", 0.5),
        (GRESO, "refill_margin", 0.5),
        (ABSOLUTE, "least_questions", 385),
        (ABSOLUTE, "draw_questions", 63),
        (EMA, "beta", 1.0),
        (EMA, "max_skipped", 1.0),
        (EMA, "margin", 0.5),
        (EMA, "max_draws", 0),
    ],
)
def test_settings_out_of_range_are_refused(prompt_filter: PromptFilter, field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field}={value}"):
        dataclasses.replace(prompt_filter, **{field: value})  # type: ignore[type-var]
