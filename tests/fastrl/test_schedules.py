"""Rollout schedules: ARS follows FastRL's rule within its bounds, and every state survives a checkpoint."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrl.schedules import SCHEDULES
from fastrl.schedules.ars import Ars
from fastrl.schedules.base import RolloutSchedule, State
from fastrl.schedules.fixed import Fixed
from fastrl.schedules.replay import Replay, recorded_schedule

SCHEDULES_TRIED: dict[str, list[RolloutSchedule]] = {
    "ars": [Ars(8, 2, "ours"), Ars(8, 2, "authors"), Ars(16, 5, "ours")],
    "fixed": [Fixed(8)],
    "replay": [Replay((8, 7, 3))],
}

Epochs = list[list[list[int]]]
"""The kept counts per group, of the steps of each epoch."""

epochs = st.lists(
    st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=4), max_size=4), min_size=1, max_size=5
)


def run(schedule: RolloutSchedule, history: Epochs, checkpoint_before: int | None = None) -> list[int]:
    """The n of every step; with `checkpoint_before` the state takes the way over a file before that step."""
    state, numbers = schedule.initial_state(), []
    for epoch, steps in enumerate(history):
        for kept in steps:
            if checkpoint_before == len(numbers):
                state = json.loads(json.dumps(state))
            numbers.append(schedule.next_n(state))
            state = schedule.observe(state, np.array(kept))
        state = schedule.end_epoch(state, (epoch + 1) / len(history))
    return [*numbers, schedule.next_n(state)]


def ars_by_definition(n: int, n_min: int, history: Epochs) -> list[int]:
    """ARS with the boundary step in its own epoch and halves rounded up, written out."""
    numbers, current, g1 = [], n, None
    for epoch, steps in enumerate(history):
        numbers += [current] * len(steps)
        if not steps:
            continue
        progress = (epoch + 1) / len(history)
        m = math.fsum(sum(kept) / len(kept) for kept in steps) / len(steps)
        maximum = sum(max(kept) for kept in steps) / len(steps)
        g1 = (m + maximum) / 2 if g1 is None else g1
        f3 = progress * m + (1 - progress) * maximum
        current = max(n_min, min(n, math.floor(n - max(0, g1 - f3) + 0.5)))
    return [*numbers, current]


def test_every_schedule_is_tried_here() -> None:
    assert set(SCHEDULES_TRIED) == set(SCHEDULES)


@pytest.mark.parametrize("schedule", [one for tried in SCHEDULES_TRIED.values() for one in tried], ids=repr)
def test_contract(schedule: RolloutSchedule) -> None:
    @given(epochs, st.integers(0, 12))
    def check(history: Epochs, checkpoint_before: int) -> None:
        numbers = run(schedule, history)
        assert set(numbers) <= set(schedule.possible_n())
        assert run(schedule, history, checkpoint_before) == numbers

    check()
    assert list(schedule.possible_n()) == sorted(set(schedule.possible_n()))
    assert isinstance(schedule.initial_state()["version"], int)


def test_observing_changes_no_state_in_place() -> None:
    for schedule in [one for tried in SCHEDULES_TRIED.values() for one in tried]:
        state = schedule.initial_state()
        before = json.dumps(state)
        schedule.end_epoch(schedule.observe(state, np.array([3, 4])), 0.5)
        assert json.dumps(state) == before


@given(epochs)
def test_ars_follows_its_rule(history: Epochs) -> None:
    assert run(Ars(8, 2, "ours"), history) == ars_by_definition(8, 2, history)


@given(epochs, st.sampled_from(["ours", "authors"]))
def test_ars_is_bounded_and_constant_before_its_first_boundary(history: Epochs, compat: str) -> None:
    numbers = run(Ars(8, 3, compat), history)  # type: ignore[arg-type]
    assert min(numbers) >= 3
    assert max(numbers) <= 8
    first = next((len(steps) for steps in history if steps), 0)
    assert numbers[:first] == [8] * first


def test_ars_by_hand() -> None:
    # Epoch 1: m = 4, M = 8, g1 = 6, f3 = .5*4 + .5*8 = 6: still 8. Epoch 2: m = 2, M = 3, f3 = 2: 8 - 4.
    history = [[[4, 8, 0], [4, 8, 0]], [[1, 3], [1, 3]]]
    assert run(Ars(8, 2, "ours"), history) == [8, 8, 8, 8, 4]


def after_one_epoch(schedule: Ars, kept: list[int], progress: float) -> State:
    return schedule.end_epoch(schedule.observe(schedule.initial_state(), np.array(kept)), progress)


def test_ars_rounds_halves_up_and_the_authors_to_even() -> None:
    # Progress 1: f3 = m = 2, M = 5, g1 = 3.5, so the target is 8 - 1.5 = 6.5.
    kept = [5, 1, 1, 1]
    ours = Ars(8, 2, "ours")
    assert ours.next_n(after_one_epoch(ours, kept, 1.0)) == 7
    authors = Ars(8, 2, "authors")
    state = after_one_epoch(authors, kept, 1.0)
    assert authors.next_n(state) == 8
    assert authors.next_n(authors.observe(state, np.array(kept))) == 6


def test_with_the_authors_the_first_step_of_an_epoch_counts_for_the_last_one() -> None:
    # The boundary step brings the buffer from m = M = 8 to m = (8 + 2) / 2 = 5, M = (8 + 4) / 2 = 6.
    ours, authors = Ars(8, 2, "ours"), Ars(8, 2, "authors")
    boundary = np.array([4, 0])
    assert ours.observe(after_one_epoch(ours, [8], 0.5), boundary)["steps"] == 1
    closed = authors.observe(after_one_epoch(authors, [8], 0.5), boundary)
    assert closed["steps"] == 0
    assert closed["g1"] == 5.5


def test_replay_follows_the_values_and_holds_the_last() -> None:
    history: Epochs = [[[1], [1]], [[1]], [[1]], [[1]]]
    assert run(Replay((8, 7, 3)), history) == [8, 8, 7, 3, 3, 3]


def write_steps(folder: Path, records: list[dict[str, object]]) -> Path:
    path = folder / "steps.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_recorded_schedule_replays_an_ars_run(tmp_path: Path) -> None:
    history: Epochs = [[[3, 8], [4, 7]], [[2, 5], [2, 4]], [[1, 2], [1, 2]]]
    numbers = run(Ars(8, 2, "ours"), history)[:-1]
    records: list[dict[str, object]] = [{"step": 0, "val/accuracy": 0.5}]
    records += [{"step": i + 1, "epoch": i // 2, "rollout/n": n} for i, n in enumerate(numbers)]
    values = recorded_schedule(write_steps(tmp_path, records))
    assert run(Replay(values), history)[:-1] == numbers
    assert any(a != b for a, b in pairwise(values))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            [{"step": 1, "epoch": 0, "rollout/n": 8}, {"step": 2, "epoch": 0, "rollout/n": 7}],
            "epoch 0 has 8 and 7",
        ),
        (
            [{"step": 1, "epoch": 0, "rollout/n": 8}, {"step": 2, "epoch": 2, "rollout/n": 7}],
            r"epochs \[0, 2\]",
        ),
        ([{"step": 0, "val/accuracy": 0.5}], r"has the epochs \[\]"),
        ([{"step": 1, "epoch": 0}], "steps.jsonl:1 is no step record.*rollout/n"),
    ],
)
def test_a_record_that_holds_no_schedule_is_refused(
    tmp_path: Path, records: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        recorded_schedule(write_steps(tmp_path, records))


def test_a_cut_off_record_names_its_line(tmp_path: Path) -> None:
    path = write_steps(tmp_path, [{"step": 1, "epoch": 0, "rollout/n": 8}])
    path.write_text(path.read_text() + '{"step": 2, "epo')
    with pytest.raises(ValueError, match=r"steps\.jsonl:2 is no step record"):
        recorded_schedule(path)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="n=0"):
        Fixed(0)
    for n_min, n in [(1, 8), (9, 8)]:
        with pytest.raises(ValueError, match=f"n_min={n_min} and n={n}"):
            Ars(n, n_min, "ours")
    for values in [(), (8, 0)]:
        with pytest.raises(ValueError, match="values="):
            Replay(values)
