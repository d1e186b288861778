"""Offline replay: a method on recorded rollouts does what the engine would, and costs what its work costs."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ragged_batches import batches, members, responses_of

from fastrl.alignment import align
from fastrl.method import build_method
from fastrl.replay.costs import NO_WORK, CostError, StageCosts, Work, fit_costs
from fastrl.replay.offline import ReplayError, Scenario, replay, replay_step
from fastrl.replay.predict import means_of_counts, predict
from fastrl.replay.recorded import Course, RecordedStep, subsample
from fastrl.rollouts import Rollouts

OBJECTIVE = {"name": "grpo", "clip_low": 0.2, "clip_high": 0.2, "kl_coef": 0.0, "epsilon": 1e-6}
_SELECTORS = Path(__file__).parents[2] / "experiments" / "conf" / "method" / "selector"
MDAP = {**yaml.safe_load((_SELECTORS / "mdap.yaml").read_text(encoding="utf-8")), "tau": 0.8}


def scenario(
    selector: Mapping[str, Any], rollouts: Mapping[str, Any], divisor: int = 1, prune: str = "before_logprob"
) -> Scenario:
    method = build_method(
        {
            "objective": OBJECTIVE,
            "prompts": {"name": "all"},
            "rollouts": rollouts,
            "selector": selector,
            "prune": prune,
        }
    )
    return Scenario("method", "Method", method, divisor)


def recorded(step: int, epoch: int, rollouts: Rollouts) -> RecordedStep:
    return RecordedStep(step, epoch, rollouts, np.full(rollouts.n_trajectories, np.nan))


def random_step(
    step: int, epoch: int, questions: int = 4, n: int = 8, length: int = 6, vocabulary: int = 30
) -> RecordedStep:
    rng = np.random.default_rng(step)
    lengths = rng.integers(1, length + 1, questions * n)
    return recorded(
        step,
        epoch,
        Rollouts(
            tuple(f"q{i}" for i in range(questions)),
            np.arange(questions + 1) * n,
            rng.integers(0, vocabulary, int(lengths.sum())).astype(np.int32),
            np.concatenate([[0], np.cumsum(lengths)]),
            rng.integers(0, 3, questions * n) / 2,
        ),
    )


@given(batches(), st.integers(1, 10), st.sampled_from(["first", "random"]), st.integers(0, 3))
def test_a_smaller_group_holds_recorded_trajectories_in_order(
    rollouts: Rollouts, n: int, how: Any, seed: int
) -> None:
    smaller = subsample(rollouts, n, how, np.random.default_rng(seed))
    whole, part = responses_of(rollouts), responses_of(smaller)
    for group, chosen in zip(members(rollouts), members(smaller), strict=True):
        assert len(chosen) == min(n, len(group))
        pairs = [(whole[i], rollouts.rewards[i]) for i in group]
        found = iter(pairs)
        assert all((part[i], smaller.rewards[i]) in found for i in chosen)  # a subsequence
        if how == "first":
            assert [(part[i], smaller.rewards[i]) for i in chosen] == pairs[:n]


def test_random_choices_differ_by_seed_and_repeat_with_it() -> None:
    rollouts = random_step(1, 0, questions=20).rollouts
    tokens = [subsample(rollouts, 3, "random", np.random.default_rng(seed)).tokens for seed in (0, 0, 1)]
    assert np.array_equal(tokens[0], tokens[1])
    assert not np.array_equal(tokens[0], tokens[2])


@given(batches(), st.integers(1, 7))
def test_a_replayed_step_keeps_what_selection_and_alignment_keep(rollouts: Rollouts, divisor: int) -> None:
    n = int(rollouts.group_sizes.max())
    chosen = scenario(MDAP, {"name": "fixed", "n": max(n, 2)}, divisor)
    found = replay_step(chosen, recorded(1, 0, rollouts), n, "first", 0)
    advantages = chosen.method.objective.advantages(rollouts.rewards, rollouts.offsets)
    selection = chosen.method.selector.select(rollouts, advantages, np.random.default_rng(0))
    kept = selection.kept
    if rollouts.n_trajectories >= divisor:
        kept = align(kept, rollouts.offsets, selection.priority, divisor, "trim").kept
    assert found.kept.tolist() == [sum(i in set(kept.tolist()) for i in group) for group in members(rollouts)]
    lengths = [len(response) for response in responses_of(rollouts)]
    assert found.work == Work(
        1,
        max(lengths),
        len(lengths),
        sum(lengths),
        len(kept),
        sum(lengths[i] for i in kept),
        len(kept),
        sum(lengths[i] for i in kept),
    )


def test_pruning_after_log_probs_scores_every_trajectory() -> None:
    step = random_step(1, 0)
    before, after = (
        replay_step(scenario(MDAP, {"name": "fixed", "n": 8}, prune=prune), step, 8, "first", 0).work
        for prune in ("before_logprob", "after_logprob")
    )
    assert after.scored_tokens == after.sampled_tokens > before.scored_tokens == before.kept_tokens
    assert after.kept_tokens == before.kept_tokens


def test_the_path_of_ars_is_that_of_a_run_which_observes_the_same_counts() -> None:
    chosen = scenario(MDAP, {"name": "ars", "n": 8, "n_min": 2, "compat": "ours"})
    steps = [random_step(step, (step - 1) // 3, vocabulary=30 if step < 4 else 2) for step in range(1, 10)]
    course = Course((3 / 9, 6 / 9, 1.0))
    (outcome,) = replay(steps, [chosen], course, "first", 0)

    schedule = chosen.method.rollouts
    state, path = schedule.initial_state(), []
    for step in steps:
        n = schedule.next_n(state)
        path.append(n)
        state = schedule.observe(state, replay_step(chosen, step, n, "first", 0).kept)
        if step.step % 3 == 0:
            state = schedule.end_epoch(state, step.step / 9)
    assert len(set(path)) > 1  # the number of rollouts does change here
    assert outcome.epochs == (0, 1, 2)
    assert list(outcome.n_by_epoch) == [path[0], path[3], path[6]]
    assert outcome.sampled_per_question == pytest.approx(np.mean(path))
    assert outcome.kept_counts.sum() == outcome.groups == 36
    kept = sum(count * number for count, number in enumerate(outcome.kept_counts.tolist()))
    assert outcome.kept_per_question == kept / 36


def test_a_pass_holds_one_step_at_a_time() -> None:
    """Ten times the steps take no more memory."""

    def peak(steps: int) -> int:
        source: Iterator[RecordedStep] = (
            random_step(step, 0, questions=16, length=100) for step in range(1, steps + 1)
        )
        tracemalloc.start()
        replay(source, [scenario(MDAP, {"name": "fixed", "n": 8})], Course((1.0,)), "first", 0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(20) < 1.3 * peak(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"rollouts": {"name": "fixed", "n": 9}},
            "samples 9 rollouts per question, but step 1 has at most 8",
        ),
        ({"steps": (2, 1)}, r"step 1 \(epoch 0\) follows step 2"),
        ({"steps": ()}, "no group is recorded"),
        ({"reward": math.nan}, "NaN or infinite, in question 'q0'"),
    ],
)
def test_what_cannot_be_replayed_is_refused(change: Mapping[str, Any], message: str) -> None:
    steps = [random_step(step, 0) for step in change.get("steps", (1, 2))]
    if "reward" in change:
        steps[0].rollouts.rewards[3] = change["reward"]
    chosen = scenario({"name": "all"}, change.get("rollouts", {"name": "fixed", "n": 8}))
    with pytest.raises(ValueError, match=message):
        replay(steps, [chosen], Course((1.0,)), "first", 0)


def test_methods_that_filter_prompts_are_refused() -> None:
    config = {"name": "dynamic_sampling", "max_draws": 3, "oversample": 1.0}
    chosen = scenario({"name": "all"}, {"name": "fixed", "n": 8})
    method = build_method(
        {
            "objective": OBJECTIVE,
            "prompts": config,
            "rollouts": {"name": "fixed", "n": 8},
            "selector": {"name": "all"},
            "prune": "before_logprob",
        }
    )
    with pytest.raises(ReplayError, match="filters prompts"):
        replay(
            [random_step(1, 0)],
            [Scenario("dapo", "DAPO", method, chosen.divisor)],
            Course((1.0,)),
            "first",
            0,
        )


def step_records(kept: int, rates: Mapping[str, tuple[float, float]], steps: int = 6) -> list[dict[str, Any]]:
    """Records whose seconds are a fixed cost and a rate per token each."""
    records = []
    for step in range(1, steps + 1):
        generated, trained = 1000 + 37 * step, kept + 11 * step
        record = {
            "step": step,
            "tokens/generated": generated,
            "tokens/trained": trained,
            "tokens/total": generated + 3 * trained,
            "actor/kl": 0.1,
        }
        for stage, (fixed, rate) in rates.items():
            tokens = trained if stage in ("old", "ref", "update_actor") else generated
            record[f"cpu_s/{stage}"] = fixed + rate * tokens
        records.append(record)
    return records


RATES = {
    "gen": (0.0, 2e-3),
    "reward": (0.0, 1e-5),
    "adv": (0.0, 0.0),
    "select": (0.0, 1e-6),
    "old": (0.2, 1e-3),
    "ref": (0.1, 1e-3),
    "update_actor": (0.5, 4e-3),
}


def test_two_runs_tell_fixed_costs_from_costs_per_token() -> None:
    costs = fit_costs("two", [step_records(1000, RATES), step_records(400, RATES)], "cpu_s", [{}, {}])
    assert costs.unit == "CPU-s"
    for stage in ("old", "ref", "update_actor"):
        token = "scored_tokens" if stage != "update_actor" else "kept_tokens"
        fixed, rate = RATES[stage]
        assert costs.stages[stage] == pytest.approx({token: rate, "steps": fixed})
    assert costs.stages["gen"] == pytest.approx({"sampled_tokens": 2e-3})


def test_one_run_gives_means_per_token_which_add_up_to_its_seconds() -> None:
    records = step_records(1000, RATES)
    costs = fit_costs("one", [records], "cpu_s", [{}])
    assert set(costs.stages["old"]) == {"scored_tokens"}
    trained = sum(record["tokens/trained"] for record in records)
    assert costs.stages["old"]["scored_tokens"] * trained == pytest.approx(
        sum(record["cpu_s/old"] for record in records)
    )
    assert "upper bounds" in costs.note


def test_generation_grows_with_the_longest_response_where_it_is_known() -> None:
    records = step_records(1000, RATES)
    longest = {record["step"]: 20 + record["step"] % 3 for record in records}
    for record in records:
        record["cpu_s/gen"] = 0.01 * longest[record["step"]] + 1e-4 * record["tokens/generated"]
    costs = fit_costs("one", [records], "cpu_s", [longest])
    assert costs.stages["gen"] == pytest.approx({"longest": 0.01, "sampled_tokens": 1e-4})


@pytest.mark.parametrize("key", ["cpu_s/old", "tokens/trained"])
def test_records_without_a_key_give_no_costs(key: str) -> None:
    records = step_records(1000, RATES)
    del records[2][key]
    with pytest.raises(CostError, match=f"step 3 has no number for {key}"):
        fit_costs("one", [records], "cpu_s", [{}])


def test_no_steps_give_no_costs() -> None:
    with pytest.raises(CostError, match="no training step"):
        fit_costs("none", [[]], "cpu_s", [{}])


def test_speed_is_the_baselines_step_over_the_methods() -> None:
    costs = StageCosts("c", "derived", "s", "", {"gen": {"sampled_trajectories": 1.0}, "old": {"steps": 8.0}})
    whole, half = (means_of_counts("m", 1, n, n) for n in (8, 4))
    baseline, method = predict(costs, whole, [half])
    assert (baseline.speed, method.speed) == (1.0, 16 / 12)
    assert method.stages == {"gen": 4.0, "old": 8.0}


@pytest.mark.parametrize(("sampled", "kept"), [(8, 0), (8, 9), (8, math.nan)])
def test_impossible_counts_are_refused(sampled: float, kept: float) -> None:
    with pytest.raises(ValueError, match="0 < kept <= sampled"):
        means_of_counts("m", 256, sampled, kept)


def test_counts_give_no_seconds_where_costs_grow_with_tokens() -> None:
    costs = StageCosts("c", "measured", "s", "", {"gen": {"sampled_tokens": 1.0}})
    whole = means_of_counts("m", 1, 8, 8)
    with pytest.raises(CostError, match="grow with sampled_tokens"):
        predict(costs, whole, [])


def test_work_adds_up() -> None:
    work = Work(1, 2, 3, 4, 5, 6, 7, 8)
    assert NO_WORK.plus(work).plus(work) == Work(2, 4, 6, 8, 10, 12, 14, 16)
