"""A method's choices on recorded rollouts: what it keeps, how much it samples, and the work they make."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastrl.alignment import Alignment, AlignmentError, align
from fastrl.filters.all import AllPrompts
from fastrl.groups import check_finite
from fastrl.method import Method
from fastrl.replay.costs import NO_WORK, Work
from fastrl.replay.predict import StepMeans
from fastrl.replay.recorded import Course, RecordedStep, Subsample, subsample
from fastrl.rollouts import IntArray, Rollouts
from fastrl.schedules.base import State


class ReplayError(ValueError):
    """Recorded rollouts that a method cannot be replayed on."""


@dataclass(frozen=True)
class Scenario:
    """A method to replay. name: the method's; label: of its row. divisor: kept trajectories are aligned to a
    multiple of it, 1 for no alignment."""

    name: str
    label: str
    method: Method
    divisor: int


@dataclass(frozen=True)
class ReplayedStep:
    """One step under one scenario. n: rollouts per question. kept: (Q,) per group, after alignment."""

    step: int
    epoch: int
    n: int
    kept: NDArray[np.int64]
    work: Work


@dataclass(frozen=True)
class Outcome:
    """A scenario over all recorded steps.

    kept_counts: (G + 1,) int64, how many groups kept 0 ... G trajectories. n_by_epoch, kept_by_epoch: means
    over an epoch's recorded steps; epochs: their numbers. work: summed over the steps.
    """

    scenario: Scenario
    steps: int
    groups: int
    kept_counts: NDArray[np.int64]
    epochs: tuple[int, ...]
    n_by_epoch: tuple[float, ...]
    kept_by_epoch: tuple[float, ...]
    work: Work

    @property
    def kept_per_question(self) -> float:
        return self.work.kept_trajectories / self.groups

    @property
    def sampled_per_question(self) -> float:
        return self.work.sampled_trajectories / self.groups

    def mean_step(self) -> StepMeans:
        """Its mean step, for `fastrl.replay.predict.predict`."""
        work = Work(**{name: value / self.steps for name, value in vars(self.work).items()})
        return StepMeans(self.scenario.label, self.kept_per_question, self.sampled_per_question, work)


def replay(
    steps: Iterable[RecordedStep],
    scenarios: Sequence[Scenario],
    course: Course,
    how: Subsample,
    seed: int,
) -> list[Outcome]:
    """Replay every scenario over the recorded steps, in one pass; one step is held in memory at a time.

    A step follows what the reference engine does after sampling: advantages of the full groups, selection,
    alignment (a step with fewer trajectories than the divisor stays as it is), observation by the schedule.
    The policy is not trained, so what a method would sample after other updates is not known: later steps are
    those of the recorded run. Where a schedule asks for fewer rollouts than recorded, `how` chooses among the
    recorded ones.

    ReplayError when a scenario needs more rollouts than a group has recorded, when its method filters
    prompts, when steps are not in order, or when there is no step. ValueError for rewards that are not
    finite.
    """
    tallies = [_Tally(scenario, course, how, seed) for scenario in scenarios]
    for step in _in_order(steps):
        check_finite(step.rollouts.rewards, step.rollouts.offsets, "rewards", step.rollouts.question_ids)
        for tally in tallies:
            tally.add(step)
    return [tally.outcome() for tally in tallies]


def replay_step(
    scenario: Scenario, recorded: RecordedStep, n: int, how: Subsample, seed: int
) -> ReplayedStep:
    """One step with n rollouts per question, without any schedule."""
    rollouts = subsample(recorded.rollouts, n, how, _stream(seed, "subsample", recorded.step))
    method = scenario.method
    advantages = method.objective.advantages(rollouts.rewards, rollouts.offsets)
    selection = method.selector.select(rollouts, advantages, _stream(seed, "selector", recorded.step))
    chosen = np.asarray(selection.kept, dtype=np.int64)
    try:
        alignment = align(chosen, rollouts.offsets, selection.priority, scenario.divisor, "trim")
    except AlignmentError:
        nothing = np.zeros(0, dtype=np.int64)
        alignment = Alignment(chosen, nothing, nothing)
    kept = np.bincount(rollouts.group_of[alignment.kept], minlength=rollouts.n_groups)
    work = _work(rollouts, alignment.kept, method.prune == "before_logprob")
    return ReplayedStep(recorded.step, recorded.epoch, n, kept, work)


def _work(rollouts: Rollouts, kept: IntArray, prune_first: bool) -> Work:
    lengths = rollouts.lengths
    sampled, sampled_tokens = float(len(lengths)), float(lengths.sum())
    trained, trained_tokens = float(len(kept)), float(lengths[kept].sum())
    return Work(
        steps=1,
        longest=float(lengths.max(initial=0)),
        sampled_trajectories=sampled,
        sampled_tokens=sampled_tokens,
        scored_trajectories=trained if prune_first else sampled,
        scored_tokens=trained_tokens if prune_first else sampled_tokens,
        kept_trajectories=trained,
        kept_tokens=trained_tokens,
    )


class _Tally:
    """A scenario in the course of a pass: its schedule's state, and sums that stay small."""

    def __init__(self, scenario: Scenario, course: Course, how: Subsample, seed: int) -> None:
        if not isinstance(scenario.method.prompts, AllPrompts):
            raise ReplayError(
                f"{scenario.label} filters prompts, and what it would sample instead of a refused question "
                "is not recorded; replay methods with prompts=all"
            )
        self.scenario, self.course, self.how, self.seed = scenario, course, how, seed
        self.schedule: State = scenario.method.rollouts.initial_state()
        self.epoch = 0
        self.work = NO_WORK
        self.counts = np.zeros(1, dtype=np.int64)
        self.by_epoch: dict[int, list[float]] = {}

    def add(self, recorded: RecordedStep) -> None:
        schedule = self.scenario.method.rollouts
        while self.epoch < recorded.epoch:
            if self.epoch >= len(self.course.progress):
                raise ReplayError(f"the end of epoch {self.epoch} is not in the course of {self.course}")
            self.schedule = schedule.end_epoch(self.schedule, self.course.progress[self.epoch])
            self.epoch += 1
        n = schedule.next_n(self.schedule)
        largest = int(recorded.rollouts.group_sizes.max(initial=0))
        if recorded.rollouts.n_groups and n > largest:
            raise ReplayError(
                f"{self.scenario.label} samples {n} rollouts per question, but step {recorded.step} has at "
                f"most {largest} recorded; replay it with rollouts.n={largest}, or record more"
            )
        replayed = replay_step(self.scenario, recorded, n, self.how, self.seed)
        if len(replayed.kept):
            self.schedule = schedule.observe(self.schedule, replayed.kept)
        self.work = self.work.plus(replayed.work)
        self._count(replayed)

    def _count(self, replayed: ReplayedStep) -> None:
        counts = np.bincount(replayed.kept, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        sums = self.by_epoch.setdefault(replayed.epoch, [0.0, 0.0, 0.0, 0.0])
        values = (1.0, float(replayed.n), float(replayed.kept.sum()), float(len(replayed.kept)))
        for i, value in enumerate(values):
            sums[i] += value

    def outcome(self) -> Outcome:
        groups = int(self.counts.sum())
        if not groups:
            raise ReplayError("no group is recorded, so there is nothing to replay")
        by_epoch = sorted(self.by_epoch.items())
        return Outcome(
            scenario=self.scenario,
            steps=int(self.work.steps),
            groups=groups,
            kept_counts=self.counts,
            epochs=tuple(epoch for epoch, _ in by_epoch),
            n_by_epoch=tuple(n / steps for _, (steps, n, _, _) in by_epoch),
            kept_by_epoch=tuple(kept / max(groups, 1) for _, (_, _, kept, groups) in by_epoch),
            work=self.work,
        )


def _in_order(steps: Iterable[RecordedStep]) -> Iterator[RecordedStep]:
    step, epoch = -1, 0
    for recorded in steps:
        if recorded.step <= step or recorded.epoch < epoch:
            raise ReplayError(
                f"step {recorded.step} (epoch {recorded.epoch}) follows step {step} (epoch {epoch}); "
                "a replay needs the steps in the order of training"
            )
        step, epoch = recorded.step, recorded.epoch
        yield recorded


def _stream(seed: int, purpose: str, step: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(f"replay {purpose}".encode()), seed, step])
