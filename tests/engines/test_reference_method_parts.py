"""What parts of a method ask of the engine: further questions, shaped rewards, advantages and weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_policies import save_tiny_policy
from tiny_runs import ALL_PROMPTS, GRPO, TRAINING, Recorder, method_of, tiny_run

from fastrl.advantages import group_advantages

CPPO = {"name": "cppo", "pruning_rate": 0.5, "epsilon": 1e-4, "scope": "question", "allocation": False}
SHORT = dataclasses.replace(TRAINING, epochs=1, validate_every=0, record_rollouts_every=1)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


def recorded(policy: Path, folder: Path, **parts: Any) -> Recorder:
    recorder = Recorder()
    assert tiny_run(policy, folder, method_of(**parts), training=SHORT, recorder=recorder).finished
    return recorder


@pytest.mark.parametrize("update_mode", ["fixed", "mini_batch"])
def test_allocation_trains_as_many_trajectories_in_as_many_updates_of_fewer_steps(
    policy: Path, tmp_path: Path, update_mode: Any
) -> None:
    training = dataclasses.replace(SHORT, update_mode=update_mode)
    runs = {}
    for name, selector in [("all", {"name": "all"}), ("allocation", {**CPPO, "allocation": True})]:
        runs[name] = Recorder()
        method = method_of(selector=selector)
        tiny_run(policy, tmp_path / name, method, training=training, recorder=runs[name])
    assert [len(runs[name].steps) for name in ("all", "allocation")] == [10 // 4, 10 // 8]
    for key in ("select/kept_aligned", "actor/updates"):
        assert runs["allocation"].steps[0][key] == runs["all"].steps[0][key]
    assert runs["allocation"].steps[0]["rollout/questions"] == 8


def test_allocation_that_asks_for_more_questions_than_there_are_says_so(policy: Path, tmp_path: Path) -> None:
    selector = {**CPPO, "pruning_rate": 5 / 6, "allocation": True}
    with pytest.raises(ValueError, match=r"10 training questions .* Cppo plans 24 questions a step"):
        tiny_run(policy, tmp_path, method_of(selector=selector), training=SHORT)


def test_the_overlong_penalty_changes_advantages_and_no_recorded_reward(policy: Path, tmp_path: Path) -> None:
    objective = {
        **GRPO,
        "name": "dapo_overlong",
        "kl_coef": 0.0,
        "max_tokens": 8,
        "overlong_buffer": 6,
        "overlong_weight": 1.0,
    }
    recorder = recorded(policy, tmp_path / "a", objective=objective)
    for step, record in recorder.rollouts.items():
        rollouts = record.rollouts
        penalty = np.clip((rollouts.lengths - 2) / 6, 0, 1)
        assert penalty.max() > 0
        expected = group_advantages(rollouts.rewards - penalty, rollouts.offsets, True, GRPO["epsilon"])
        assert record.advantages.tolist() == expected.tolist()
        reward = next(r["reward/mean"] for r in recorder.records if r["step"] == step)
        assert reward == pytest.approx(rollouts.rewards.mean())


@pytest.mark.parametrize(
    ("selector", "n", "kept"),
    [
        ({"name": "pods", "keep": 4, "std_normalise": True, "epsilon": 1e-6}, 6, 16),
        ({"name": "gfpo", "keep": 2, "metric": "length", "std_normalise": True, "epsilon": 1e-6}, 6, 8),
        ({"name": "mc_grpo", "scale": "mad", "epsilon": 1e-3}, 7, 24),
        ({"name": "dppo", "pruning_rate": 0.5, "epsilon": 1e-4, "mean_over": "sequences"}, 6, None),
        ({**CPPO, "scope": "batch"}, 6, 12),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else str(value),
)
def test_every_neighbour_trains(
    policy: Path, tmp_path: Path, selector: dict[str, Any], n: int, kept: int | None
) -> None:
    recorder = recorded(
        policy, tmp_path, prompts=ALL_PROMPTS, selector=selector, rollouts={"name": "fixed", "n": n}
    )
    for record in recorder.steps:
        assert record["rollout/n"] == n
        assert record["actor/updates"] == 2
        assert kept is None or record["select/kept"] == kept
        assert record["actor/grad_norm"] is not None
        assert np.isfinite(record["actor/grad_norm"])
