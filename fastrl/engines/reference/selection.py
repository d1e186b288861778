"""Which of a step's trajectories train the policy, and in which updates."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastrl.alignment import (
    Alignment,
    AlignmentError,
    align,
    aligned_advantages,
    divisor_for,
    split_mini_batches,
    split_updates,
)
from fastrl.engines.reference.clock import StageClock
from fastrl.engines.reference.run import TrainingRun
from fastrl.engines.reference.seeds import stream
from fastrl.objectives.base import ShapesRewards
from fastrl.rollouts import FloatArray, Rollouts


@dataclass(frozen=True)
class Chosen:
    """selected: how many the selector kept, before alignment. kept: (K,) int64 ascending, after alignment.
    advantages: (K,), weights applied. full_advantages: (N,), those of the full groups. reason: N strings, the
    selector's."""

    selected: int
    kept: NDArray[np.int64]
    advantages: FloatArray
    full_advantages: FloatArray
    reason: tuple[str, ...]


def choose(run: TrainingRun, rollouts: Rollouts, step: int, clock: StageClock) -> Chosen:
    """Advantages of the full groups, the selector's choice, and its alignment to the divisor."""
    nothing = np.zeros(0, dtype=np.int64)
    if not rollouts.n_groups:
        return Chosen(0, nothing, np.zeros(0), np.zeros(0), ())
    with clock.stage("adv"):
        objective = run.method.objective
        if isinstance(objective, ShapesRewards):
            shaped = objective.shaped_rewards(rollouts.rewards, rollouts.lengths)
            rollouts = dataclasses.replace(rollouts, rewards=shaped)
        advantages = objective.advantages(rollouts.rewards, rollouts.offsets)
    with clock.stage("select"):
        selection = run.method.selector.select(rollouts, advantages, stream(run.seed, "selector", step))
        try:
            alignment = align(selection.kept, rollouts.offsets, selection.priority, divisor(run), "trim")
        except AlignmentError:
            # The whole step has fewer trajectories than the divisor: a smaller update rather than none.
            alignment = Alignment(np.asarray(selection.kept, dtype=np.int64), nothing, nothing)
        trained = aligned_advantages(selection, alignment, advantages)
    return Chosen(len(selection.kept), alignment.kept, trained, advantages, selection.reason)


def update_parts(run: TrainingRun, kept: int, step: int) -> list[NDArray[np.int64]]:
    """The kept trajectories 0 ... kept - 1, shuffled and cut into the step's updates, none of them empty."""
    order = stream(run.seed, "updates", step).permutation(kept)
    if run.training.update_mode == "fixed":
        parts = split_updates(kept, run.training.updates)
    else:
        size = divisor(run)
        parts = split_mini_batches(kept, size) if kept >= size else [slice(0, kept)]
    return [order[part] for part in parts]


def divisor(run: TrainingRun) -> int:
    """The number that kept trajectories are aligned to a multiple of."""
    training = run.training
    return divisor_for(
        "mini_batch" if training.update_mode == "mini_batch" else "data_parallel",
        mini_batch_questions=training.questions_per_step // training.updates,
        initial_rollouts=run.method.rollouts.next_n(run.method.rollouts.initial_state()),
        data_parallel=run.engine.data_parallel,
        updates=training.updates,
    )
