"""Follow the numbers of rollouts that another run used, epoch by epoch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastrl.rollouts import IntArray
from fastrl.schedules.base import State


@dataclass(frozen=True)
class Replay:
    """`values[e]` rollouts per question in epoch e; the last value holds for all later epochs.

    Replays ARS without its pruning: FastRL "w/o MDAP" in the ablation. `recorded_schedule` reads the values
    of a finished run.
    """

    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.values or min(self.values) < 1:
            raise ValueError(f"values={list(self.values)}; one number >= 1 per epoch is needed")

    def possible_n(self) -> Sequence[int]:
        return sorted(set(self.values))

    def initial_state(self) -> State:
        return {"version": 1, "epoch": 0}

    def next_n(self, state: State) -> int:
        return self.values[min(int(state["epoch"]), len(self.values) - 1)]

    def observe(self, state: State, kept_per_group: IntArray) -> State:
        return state

    def end_epoch(self, state: State, progress: float) -> State:
        return {**state, "epoch": state["epoch"] + 1}


def recorded_schedule(steps: Path) -> tuple[int, ...]:
    """The rollouts per question of each epoch in a run's `steps.jsonl`, for `Replay.values`.

    ValueError if the file holds no training step, a line is no step record, an epoch is missing, or the
    number changes inside an epoch (as it does under ARS with `compat: authors`).
    """
    by_epoch: dict[int, int] = {}
    for number, line in enumerate(steps.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = json.loads(line)
            if record["step"] == 0:  # validation before training
                continue
            epoch, n = int(record["epoch"]), int(record["rollout/n"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{steps}:{number} is no step record ({type(error).__name__}: {error}); a step needs "
                "step, epoch and rollout/n"
            ) from error
        if by_epoch.setdefault(epoch, n) != n:
            raise ValueError(
                f"{steps}:{number}: epoch {epoch} has {by_epoch[epoch]} and {n} rollouts per question; "
                "a schedule to replay needs one number per epoch"
            )
    if sorted(by_epoch) != list(range(len(by_epoch))) or not by_epoch:
        raise ValueError(f"{steps} has the epochs {sorted(by_epoch)}; a schedule needs every epoch from 0 on")
    return tuple(by_epoch[epoch] for epoch in range(len(by_epoch)))
