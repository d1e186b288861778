"""The first half of a step: draw questions, sample responses and reward them until the step is full."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastrl.advantages import zero_variance
from fastrl.engines.reference.batch import Batch, concatenate, restrict, restrict_to_groups
from fastrl.engines.reference.clock import StageClock
from fastrl.engines.reference.data_order import DataPosition, draw_questions
from fastrl.engines.reference.policy import read_prompts
from fastrl.engines.reference.run import TrainingRun
from fastrl.engines.reference.sampler import decode, sample
from fastrl.engines.reference.seeds import stream, torch_stream
from fastrl.engines.reference.settings import OnBadReward
from fastrl.method import planned_questions
from fastrl.rewards import Reward, RewardFunction
from fastrl.rollouts import Question, Rollouts
from fastrl.schedules.base import State


class RewardError(RuntimeError):
    """The reward function returned something that cannot be trained on."""


@dataclass(frozen=True)
class SamplingTotals:
    """Sums over everything that a step sampled, whether or not its group was accepted.

    draws: how often questions were drawn. skipped: visits that the filter left out before sampling.
    questions, trajectories, tokens: groups sampled, their responses, and response tokens. dropped:
    trajectories left out for a bad reward; the reward sums are over the others. zero_variance: groups whose
    rewards are all equal. surprisal: sum over tokens of -log p of the sampled token.
    """

    draws: int = 0
    skipped: int = 0
    questions: int = 0
    trajectories: int = 0
    tokens: int = 0
    dropped: int = 0
    zero_variance: int = 0
    surprisal: float = 0.0
    reward: float = 0.0
    accuracy: float = 0.0
    format: float = 0.0

    def plus(self, other: SamplingTotals) -> SamplingTotals:
        return SamplingTotals(**{name: value + getattr(other, name) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Collected:
    """batch: the accepted groups, at most as many as a step is planned to have, possibly none. position,
    prompts: the data position and the prompt filter's state after the step's draws."""

    batch: Batch
    totals: SamplingTotals
    position: DataPosition
    prompts: State


def collect(
    run: TrainingRun, state: State, position: DataPosition, n: int, step: int, clock: StageClock
) -> Collected:
    """Fill one step with groups of n rollouts; `state` is the prompt filter's.

    When the filter's `max_draws` are used up, the groups that are there make up the step. RewardError for bad
    rewards, see `checked_rewards`.
    """
    prompt_filter = run.method.prompts
    accepted: list[Batch] = []
    missing = planned_questions(run.method, run.training.questions_per_step)
    totals = SamplingTotals()
    while missing > 0 and totals.draws < prompt_filter.max_draws:
        epoch, draw = position.epoch, totals.draws
        count = prompt_filter.next_draw(state, missing)
        drawn, position = draw_questions(position, count, len(run.questions), run.seed)
        visited = [run.questions[i] for i in drawn]
        wanted = prompt_filter.plan(
            state, [question.id for question in visited], epoch, stream(run.seed, "prompt filter", step, draw)
        )
        chosen = [question for question, take in zip(visited, wanted, strict=True) if take]
        totals = totals.plus(SamplingTotals(draws=1, skipped=len(visited) - len(chosen)))
        if not chosen:
            continue
        batch, sampled = _sample_groups(run, chosen, n, step, draw, clock)
        totals = totals.plus(sampled)
        taken = prompt_filter.accept(batch.rollouts, batch.accuracy)
        state = prompt_filter.observe(state, batch.rollouts, batch.accuracy, epoch)
        taken = taken & (np.cumsum(taken) <= missing)
        accepted.append(restrict_to_groups(batch, taken))
        missing -= int(taken.sum())
    return Collected(concatenate(accepted), totals, position, state)


def _sample_groups(
    run: TrainingRun, questions: Sequence[Question], n: int, step: int, draw: int, clock: StageClock
) -> tuple[Batch, SamplingTotals]:
    with clock.stage("gen"):
        prompts = read_prompts(run.policy, questions, run.training.max_prompt_tokens)
        sampled = sample(
            run.policy,
            prompts,
            n,
            max_tokens=run.training.max_response_tokens,
            temperature=run.training.temperature,
            batch=run.engine.sample_batch,
            generator=torch_stream(run.seed, "sampling", step, draw),
        )
    with clock.stage("reward"):
        responses = decode(run.policy.tokenizer, sampled)
        asked = [question for question in questions for _ in range(n)]
        rewards = checked_rewards(run.reward, asked, responses, run.training.on_bad_reward)
        values = np.array([[part.total, part.accuracy, part.format] for part in rewards])
    batch = Batch(
        prompts=tuple(prompts),
        rollouts=Rollouts.from_padded(
            [question.id for question in questions],
            sampled.tokens,
            sampled.lengths,
            values[:, 0],
            np.full(len(questions), n),
        ).packed(),
        accuracy=values[:, 1],
        format=values[:, 2],
        responses=tuple(responses),
    )
    good = np.isfinite(values).all(1)
    batch = restrict(batch, good)
    totals = SamplingTotals(
        questions=len(questions),
        trajectories=len(responses),
        tokens=int(sampled.lengths.sum()),
        dropped=int((~good).sum()),
        zero_variance=int(zero_variance(batch.rollouts.rewards, batch.rollouts.offsets).sum()),
        surprisal=-float(sampled.logp.sum(dtype=np.float64)),
        reward=float(batch.rollouts.rewards.sum()),
        accuracy=float(batch.accuracy.sum()),
        format=float(batch.format.sum()),
    )
    return batch, totals


def checked_rewards(
    reward: RewardFunction,
    questions: Sequence[Question],
    responses: Sequence[str],
    on_bad_reward: OnBadReward,
) -> list[Reward]:
    """The rewards of (question, response) pairs.

    RewardError if there is not one per pair, or, with "error", if one is not finite.
    """
    rewards = reward(questions, responses)
    if len(rewards) != len(responses):
        raise RewardError(
            f"the reward function returned {len(rewards)} rewards for {len(responses)} responses; it must "
            "return one per response, in order"
        )
    if on_bad_reward == "error":
        for question, response, part in zip(questions, responses, rewards, strict=True):
            if not all(map(math.isfinite, (part.total, part.accuracy, part.format))):
                raise RewardError(
                    f"question {question.id!r}: the reward of the response {response[:200]!r} is {part}; "
                    "mend the reward function, or set training.on_bad_reward=drop to leave such trajectories "
                    "out"
                )
    return rewards
