"""Training runs: records, equal steps for all methods, equivalences between methods, and bad input."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_policies import letter_reward, save_tiny_policy, tiny_questions
from tiny_runs import (
    ARS,
    DYNAMIC,
    ENGINE,
    FIXED,
    GRESO,
    GRPO,
    MDAP,
    TRAINING,
    Recorder,
    final_weights,
    method_of,
    same_weights,
    tiny_run,
)
from transformers import AutoModelForCausalLM, AutoTokenizer

from fastrl.engines.reference.collect import RewardError
from fastrl.engines.reference.loop import TrainOutcome
from fastrl.engines.reference.policy import PolicyError
from fastrl.engines.reference.settings import engine_settings, training_settings
from fastrl.rewards import Reward
from fastrl.rollouts import Question

STAGES = ["gen", "reward", "adv", "select", "old", "ref", "update_actor", "validation", "save_checkpoint"]
DOCUMENTED = {
    "step",
    "epoch",
    "time",
    *(f"{clock}/{stage}" for clock in ("timing_s", "cpu_s") for stage in [*STAGES, "step"]),
    *(
        f"rollout/{key}"
        for key in ["n", "questions", "skipped", "trajectories", "tokens", "draws", "accepted"]
    ),
    *(f"select/kept{key}" for key in ("", "_aligned", "_per_question_mean", "_per_question_max")),
    "select/zero_variance",
    *(f"reward/{key}" for key in ("mean", "accuracy", "format", "dropped")),
    *(f"actor/{key}" for key in ("loss", "entropy", "kl", "clipfrac", "grad_norm", "updates", "lr")),
    *(f"tokens/{key}" for key in ("generated", "trained", "total")),
}
METHODS = {
    "grpo": method_of(),
    "dapo": method_of(
        objective={"name": "dapo", "clip_low": 0.2, "clip_high": 0.28, "kl_coef": 0.0, "epsilon": 1e-6},
        prompts=DYNAMIC,
    ),
    "greso": method_of(prompts=GRESO),
    "fastrl": method_of(rollouts=ARS, selector=MDAP),
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_does_the_same_number_of_steps_and_reports_the_same_keys(
    name: str, policy: Path, tmp_path: Path
) -> None:
    seen = Recorder()
    outcome = tiny_run(policy, tmp_path, METHODS[name], recorder=seen)
    assert outcome == TrainOutcome(step=6, finished=True)  # 3 epochs x (10 questions // 4)
    assert [record["step"] for record in seen.records] == [0, 1, 2, 3, 4, 5, 6]
    assert seen.records[0].keys() == {"step", "time", "val/accuracy"}
    for record in seen.records[1:]:
        validated = {"val/accuracy"} if record["step"] in (4, 6) else set()
        assert record.keys() == DOCUMENTED | validated
        json.dumps(record, allow_nan=False)
        work = sum(record[f"timing_s/{stage}"] or 0 for stage in STAGES[:7])
        assert record["timing_s/step"] == pytest.approx(work)


def test_the_learning_rate_warms_up(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    training = dataclasses.replace(TRAINING, learning_rate=3e-3, warmup_steps=3)
    tiny_run(policy, tmp_path, METHODS["grpo"], training=training, recorder=seen)
    rates = [record["actor/lr"] for record in seen.steps]
    assert rates == pytest.approx([1e-3, 2e-3, 3e-3, 3e-3, 3e-3, 3e-3])


def test_the_numbers_of_a_record_fit_together(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    training = dataclasses.replace(TRAINING, record_rollouts_every=1, on_bad_reward="drop")
    tiny_run(policy, tmp_path, METHODS["fastrl"], training=training, recorder=seen)
    assert list(seen.rollouts) == [1, 2, 3, 4, 5, 6]
    for record in seen.steps:
        rollouts = seen.rollouts[int(record["step"] or 0)]
        batch = rollouts.rollouts
        assert record["rollout/questions"] == record["rollout/accepted"] == batch.n_groups == 4
        assert record["rollout/trajectories"] == 4 * (record["rollout/n"] or 0) == batch.n_trajectories
        assert record["rollout/tokens"] == record["tokens/generated"] == len(batch.tokens)
        assert record["select/kept_aligned"] == rollouts.kept.sum()
        assert (rollouts.kept.sum() % 2, record["actor/updates"]) == (0, 2)
        assert record["tokens/trained"] == batch.lengths[rollouts.kept].sum()
        assert record["tokens/total"] == len(batch.tokens) + 3 * batch.lengths[rollouts.kept].sum()
        assert record["reward/mean"] == pytest.approx(batch.rewards.mean())
        assert record["reward/accuracy"] == pytest.approx(rollouts.accuracy.mean())
        assert record["actor/clipfrac"] is not None and 0 <= record["actor/clipfrac"] <= 1
        per_group = np.bincount(batch.group_of[rollouts.kept], minlength=4)
        assert record["select/kept_per_question_mean"] == per_group.mean()
        assert record["select/kept_per_question_max"] == per_group.max()
        assert {bool(reason) for reason in np.array(rollouts.reason)[rollouts.kept]} <= {False}
        assert all(np.array(rollouts.reason)[~rollouts.kept])


def test_advantages_are_those_of_the_full_groups_bit_for_bit(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    method = METHODS["fastrl"]
    tiny_run(
        policy,
        tmp_path,
        method,
        training=dataclasses.replace(TRAINING, record_rollouts_every=2),
        recorder=seen,
    )
    for rollouts in seen.rollouts.values():
        expected = method.objective.advantages(rollouts.rollouts.rewards, rollouts.rollouts.offsets)
        assert np.array_equal(rollouts.advantages, expected)


def test_fastrl_with_tau_zero_and_a_fixed_schedule_is_grpo_bit_for_bit(policy: Path, tmp_path: Path) -> None:
    grpo, fastrl = Recorder(), Recorder()
    tiny_run(policy, tmp_path / "grpo", METHODS["grpo"], recorder=grpo)
    keeping = method_of(selector={**MDAP, "tau": 0.0})
    tiny_run(policy, tmp_path / "fastrl", keeping, recorder=fastrl)
    assert fastrl.steps == grpo.steps
    assert same_weights(tmp_path / "grpo", tmp_path / "fastrl")


def test_pruning_before_or_after_log_probs_gives_the_same_updates(policy: Path, tmp_path: Path) -> None:
    runs = {}
    for prune in ("before_logprob", "after_logprob"):
        runs[prune] = Recorder()
        method = method_of(rollouts=ARS, selector=MDAP, prune=prune)
        training = dataclasses.replace(TRAINING, epochs=1)
        tiny_run(policy, tmp_path / prune, method, training=training, recorder=runs[prune])
    before, after = (runs[prune].steps for prune in runs)
    assert (after[0]["tokens/total"] or 0) > (before[0]["tokens/total"] or 0)
    for one, other in zip(before, after, strict=True):
        for key in ("actor/loss", "actor/kl", "actor/grad_norm", "reward/mean", "select/kept"):
            assert one[key] == pytest.approx(other[key], rel=1e-4, abs=1e-5)
    first, second = (final_weights(tmp_path / prune) for prune in runs)
    for name, weight in first.items():
        np.testing.assert_allclose(weight, second[name], atol=1e-4)


def test_the_seed_decides_everything(policy: Path, tmp_path: Path) -> None:
    seen = [Recorder(), Recorder(), Recorder()]
    for number, (recorder, seed) in enumerate(zip(seen, (3, 3, 4), strict=True)):
        training = dataclasses.replace(TRAINING, epochs=1)
        folder = tmp_path / str(number)
        tiny_run(policy, folder, METHODS["fastrl"], training=training, seed=seed, recorder=recorder)
    assert seen[0].steps == seen[1].steps
    assert seen[0].steps != seen[2].steps


def test_training_raises_the_reward(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    training = dataclasses.replace(TRAINING, epochs=8, checkpoint_every=0)
    tiny_run(policy, tmp_path, METHODS["fastrl"], training=training, recorder=seen)
    rewards = [record["reward/mean"] or 0 for record in seen.steps]
    assert np.mean(rewards[-4:]) > np.mean(rewards[:4]) + 0.3


def test_the_final_policy_loads_as_a_hugging_face_folder(policy: Path, tmp_path: Path) -> None:
    tiny_run(policy, tmp_path, METHODS["grpo"])
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "final")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "final")
    ids = tokenizer("1 + 2 =", return_tensors="pt").input_ids
    assert ids.tolist() == [AutoTokenizer.from_pretrained(policy)("1 + 2 =").input_ids]
    start = AutoModelForCausalLM.from_pretrained(policy)
    assert not np.allclose(model(ids).logits.detach(), start(ids).logits.detach())


def test_mini_batches_hold_full_groups_and_pruning_saves_updates(policy: Path, tmp_path: Path) -> None:
    training = dataclasses.replace(TRAINING, update_mode="mini_batch", updates=4)
    full, pruned = Recorder(), Recorder()
    tiny_run(policy, tmp_path / "full", METHODS["grpo"], training=training, recorder=full)
    tiny_run(policy, tmp_path / "pruned", METHODS["fastrl"], training=training, recorder=pruned)
    assert {record["actor/updates"] for record in full.steps} == {4}
    for record in pruned.steps:
        assert record["select/kept_aligned"] == 6 * (record["actor/updates"] or 0)
    assert min(record["actor/updates"] or 0 for record in pruned.steps) < 4


def test_ars_changes_the_number_of_rollouts_at_the_end_of_a_pass(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    training = dataclasses.replace(TRAINING, epochs=6)
    selector = {**MDAP, "tau": 1.0}
    tiny_run(policy, tmp_path, method_of(rollouts=ARS, selector=selector), training=training, recorder=seen)
    by_epoch: dict[Any, set[Any]] = {}
    for record in seen.steps:
        by_epoch.setdefault(record["epoch"], set()).add(record["rollout/n"])
    assert by_epoch[0] == {6}
    assert any(max(ns) < 6 for ns in by_epoch.values())


def test_a_step_without_an_accepted_group_makes_no_update_and_training_goes_on(
    policy: Path, tmp_path: Path
) -> None:
    def hopeless(questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        return [Reward(0.0, 0.0, 0.0)] * len(responses)

    seen = Recorder()
    method = method_of(prompts=DYNAMIC, rollouts=ARS, selector=MDAP)
    outcome = tiny_run(policy, tmp_path, method, reward=hopeless, recorder=seen)
    assert outcome.finished
    for record in seen.steps:
        assert (record["rollout/draws"], record["rollout/questions"]) == (3, 12)
        assert (record["rollout/accepted"], record["actor/updates"]) == (0, 0)
        assert record["actor/loss"] is None
        json.dumps(record, allow_nan=False)
    start, end = AutoModelForCausalLM.from_pretrained(policy), final_weights(tmp_path)
    for name, weight in end.items():
        assert np.array_equal(weight, start.state_dict()[name])


def test_a_short_step_uses_the_groups_that_are_there(policy: Path, tmp_path: Path) -> None:
    """Fewer trajectories than one mini-batch: one smaller update."""

    def only_one_question(questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        rewards = letter_reward(questions, responses)
        return [
            reward if question.id == "q0" else Reward(0.0, 0.0, 0.0)
            for question, reward in zip(questions, rewards, strict=True)
        ]

    seen = Recorder()
    training = dataclasses.replace(TRAINING, update_mode="mini_batch", updates=1)
    method = method_of(prompts={**DYNAMIC, "max_draws": 3})
    tiny_run(policy, tmp_path, method, training=training, reward=only_one_question, recorder=seen)
    short = [record for record in seen.steps if record["rollout/accepted"] == 1]
    assert short
    for record in short:
        assert (record["select/kept_aligned"], record["actor/updates"]) == (6, 1)


def test_all_pruned_makes_no_update(policy: Path, tmp_path: Path) -> None:
    def equal(questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        return [Reward(1.0, 1.0, 0.0)] * len(responses)

    seen = Recorder()
    method = method_of(selector={**MDAP, "drop_zero_variance": True})
    tiny_run(policy, tmp_path, method, reward=equal, recorder=seen)
    assert {record["select/kept"] for record in seen.steps} == {0}
    assert {record["actor/updates"] for record in seen.steps} == {0}


def broken_for(question_id: str, value: float) -> Any:
    def reward(questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
        rewards = letter_reward(questions, responses)
        broken = [question.id == question_id and i % 2 == 0 for i, question in enumerate(questions)]
        return [
            dataclasses.replace(reward, total=value) if bad else reward
            for reward, bad in zip(rewards, broken, strict=True)
        ]

    return reward


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_not_finite_is_an_error_naming_the_question(
    value: float, policy: Path, tmp_path: Path
) -> None:
    training = dataclasses.replace(TRAINING, validate_every=0)
    with pytest.raises(RewardError, match=r"question 'q3'.*on_bad_reward=drop"):
        tiny_run(policy, tmp_path, METHODS["grpo"], training=training, reward=broken_for("q3", value))


def test_bad_rewards_can_be_dropped_and_are_counted(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    training = dataclasses.replace(TRAINING, validate_every=0, on_bad_reward="drop", record_rollouts_every=1)
    reward = broken_for("q3", math.nan)
    tiny_run(policy, tmp_path, METHODS["fastrl"], training=training, reward=reward, recorder=seen)
    visits = [step for step, rollouts in seen.rollouts.items() if "q3" in rollouts.rollouts.question_ids]
    assert visits
    for record in seen.steps:
        rollouts = seen.rollouts[int(record["step"] or 0)].rollouts
        assert record["reward/dropped"] == (record["rollout/n"] or 0) * 4 - rollouts.n_trajectories
        assert ((record["reward/dropped"] or 0) > 0) == (record["step"] in visits)
        assert np.isfinite(rollouts.rewards).all()


def test_a_reward_function_that_returns_too_few_is_an_error(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"returned 5 rewards for 6 responses"):
        tiny_run(policy, tmp_path, METHODS["grpo"], reward=lambda q, r: letter_reward(q, r)[:-1])


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_questions_are_an_error(count: int, policy: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"{count} training questions are fewer than .*per_step=4"):
        tiny_run(policy, tmp_path, METHODS["grpo"], questions=tiny_questions(count))


def test_a_prompt_that_is_too_long_is_an_error_before_training(policy: Path, tmp_path: Path) -> None:
    questions = [*tiny_questions(9), Question("long", "1 " * 17, "1")]
    seen = Recorder()
    with pytest.raises(PolicyError, match=r"question 'long' has 17 tokens, more than max_prompt_tokens=16"):
        tiny_run(policy, tmp_path, METHODS["grpo"], questions=questions, recorder=seen)
    assert not seen.records


def test_a_response_that_does_not_fit_the_model_is_an_error(policy: Path, tmp_path: Path) -> None:
    training = dataclasses.replace(TRAINING, max_response_tokens=61)
    with pytest.raises(PolicyError, match=r"'q0' has 4 tokens; with max_response_tokens=61 .* 64 positions"):
        tiny_run(policy, tmp_path, METHODS["grpo"], training=training)


def test_a_folder_without_a_policy_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=re.escape(f"cannot load a policy from {tmp_path / 'none'}")):
        tiny_run(tmp_path / "none", tmp_path / "checkpoints", METHODS["grpo"])


def test_settings_come_from_plain_mappings_and_have_no_defaults() -> None:
    plain = {"name": "tiny", **dataclasses.asdict(TRAINING), "betas": [0.9, 0.999]}
    assert training_settings(plain) == TRAINING
    assert engine_settings({"name": "reference", **dataclasses.asdict(ENGINE)}) == ENGINE
    with pytest.raises(ValueError, match=r"training\.epochs is missing"):
        training_settings({key: value for key, value in plain.items() if key != "epochs"})
    with pytest.raises(ValueError, match=r"training\.epoch: unknown key"):
        training_settings({**plain, "epoch": 3})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions_per_step": 0}, "questions_per_step=0 must be at least 1"),
        ({"learning_rate": 0.0}, r"learning_rate=0\.0 must be above 0"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"update_mode": "other"}, "update_mode='other': one of fixed, mini_batch"),
        ({"update_mode": "mini_batch", "updates": 3}, "does not divide into training.updates=3"),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TRAINING, **change)


def test_grpo_without_kl_needs_no_reference(policy: Path, tmp_path: Path) -> None:
    seen = Recorder()
    tiny_run(policy, tmp_path, method_of(objective={**GRPO, "kl_coef": 0.0}, rollouts=FIXED), recorder=seen)
    for record in seen.steps:
        assert record["actor/kl"] is None
        assert record["tokens/total"] == 3 * (record["tokens/generated"] or 0)


def test_a_surplus_that_no_backfill_can_complete_is_trimmed(policy: Path, tmp_path: Path) -> None:
    """Three questions x 5 rollouts in two updates: one trajectory of the lowest |advantage| is left out."""
    seen = Recorder()
    training = dataclasses.replace(TRAINING, questions_per_step=3, epochs=1, record_rollouts_every=1)
    tiny_run(policy, tmp_path, method_of(rollouts={**FIXED, "n": 5}), training=training, recorder=seen)
    for rollouts in seen.rollouts.values():
        (trimmed,) = np.flatnonzero(~rollouts.kept)
        assert rollouts.reason[trimmed] == "trimmed"
        assert abs(rollouts.advantages[trimmed]) == abs(rollouts.advantages).min()
