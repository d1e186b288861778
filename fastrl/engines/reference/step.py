"""One training step: collect groups, choose the trajectories to train on, update the policy, observe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fastrl.engines.reference.batch import Batch
from fastrl.engines.reference.clock import StageClock
from fastrl.engines.reference.collect import Collected, collect
from fastrl.engines.reference.data_order import DataPosition
from fastrl.engines.reference.logprobs import Sequences, join_sequences, score
from fastrl.engines.reference.records import StepRecord, rollout_record, step_record
from fastrl.engines.reference.run import TrainingRun
from fastrl.engines.reference.selection import Chosen, choose, update_parts
from fastrl.engines.reference.update import TrainingRows, UpdateTotals, update_policy
from fastrl.method import MethodState
from fastrl.rollout_record import RolloutRecord


@dataclass(frozen=True)
class RunState:
    """What a step changes besides the policy: the number of finished steps, data position, method state."""

    step: int
    position: DataPosition
    method: MethodState


@dataclass(frozen=True)
class StepResult:
    """record: see `records.step_record`; timing, validation and checkpoint keys are the loop's."""

    state: RunState
    record: StepRecord
    rollouts: RolloutRecord


def run_step(run: TrainingRun, state: RunState, total_steps: int, clock: StageClock) -> StepResult:
    """Do step `state.step + 1` of `total_steps`.

    A step whose groups were all refused, or whose trajectories were all pruned, makes no update.
    """
    step = state.step + 1
    n = run.method.rollouts.next_n(state.method.rollouts)
    collected = collect(run, state.method.prompts, state.position, n, step, clock)
    batch = collected.batch
    chosen = choose(run, batch.rollouts, step, clock)
    scale = min(1.0, step / run.training.warmup_steps) if run.training.warmup_steps else 1.0
    updates, scored_tokens = _train(run, batch, chosen, scale, step, clock)
    kept_per_group = np.bincount(batch.rollouts.group_of[chosen.kept], minlength=batch.rollouts.n_groups)
    return StepResult(
        state=RunState(
            step, collected.position, _observed(run, state, collected, kept_per_group, step / total_steps)
        ),
        record=step_record(
            step=step,
            epoch=state.position.epoch,
            n=n,
            sampling=collected.totals,
            accepted=batch.rollouts.n_groups,
            selected=chosen.selected,
            kept_per_group=kept_per_group,
            updates=updates,
            scored_tokens=scored_tokens,
            has_reference=run.reference is not None,
            learning_rate=run.training.learning_rate * scale,
        ),
        rollouts=rollout_record(batch, chosen),
    )


def _observed(
    run: TrainingRun,
    state: RunState,
    collected: Collected,
    kept_per_group: NDArray[np.int64],
    progress: float,
) -> MethodState:
    """The method's state after the step; a pass over the data that ended in it ends the schedule's epoch."""
    schedule, rollouts = run.method.rollouts, state.method.rollouts
    if len(kept_per_group):
        rollouts = schedule.observe(rollouts, kept_per_group)
    for _ in range(collected.position.epoch - state.position.epoch):
        rollouts = schedule.end_epoch(rollouts, progress)
    return MethodState(
        prompts=run.method.prompts.end_step(collected.prompts, state.position.epoch), rollouts=rollouts
    )


def _train(
    run: TrainingRun, batch: Batch, chosen: Chosen, scale: float, step: int, clock: StageClock
) -> tuple[UpdateTotals, int]:
    """Old and reference log-probs, then the updates at `scale` times the learning rate.

    Also returns how many response tokens went through old and reference log-probs.
    """
    if not len(chosen.kept):
        return UpdateTotals(0, 0, 0.0, 0.0, 0.0, 0.0), 0
    prune_first = run.method.prune == "before_logprob"
    training, engine, device = run.training, run.engine, run.policy.device
    with clock.stage("old"):
        scored = chosen.kept if prune_first else np.arange(batch.rollouts.n_trajectories)
        sequences = _sequences(run, batch, scored)
        old = score(run.scorer, sequences, training.temperature, engine.logprob_batch)
    scored_tokens = int(sequences.response_lengths.sum())
    ref = None
    if run.reference is not None:
        with clock.stage("ref"):
            ref = score(run.reference, sequences, training.temperature, engine.logprob_batch)
        scored_tokens *= 2
    with clock.stage("update_actor"):
        if not prune_first:
            kept = torch.from_numpy(chosen.kept).to(device)
            sequences, old = sequences.take(kept), old[kept]
            ref = None if ref is None else ref[kept]
        advantages = torch.from_numpy(chosen.advantages).float().to(device)
        updates = update_policy(
            run.scorer,
            run.optimizer,
            run.method.objective,
            TrainingRows(sequences, old, ref, advantages),
            [torch.from_numpy(part).to(device) for part in update_parts(run, len(chosen.kept), step)],
            temperature=training.temperature,
            micro_batch=engine.micro_batch,
            learning_rate_scale=scale,
            max_grad_norm=training.max_grad_norm,
            where=f"step {step}",
        )
    return updates, scored_tokens


def _sequences(run: TrainingRun, batch: Batch, rows: NDArray[np.int64]) -> Sequences:
    """Prompts and responses of these trajectories, ascending."""
    rollouts = batch.rollouts
    inside = np.zeros(rollouts.n_trajectories, dtype=bool)
    inside[rows] = True
    return join_sequences(
        [batch.prompts[q] for q in rollouts.group_of[rows]],
        rollouts.tokens[np.repeat(inside, rollouts.lengths)],
        np.concatenate([[0], np.cumsum(rollouts.lengths[rows])]),
        run.policy.pad_id,
        run.policy.device,
    )
