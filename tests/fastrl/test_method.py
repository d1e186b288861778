"""A method is built from a plain mapping, says what is wrong with it, and its state survives a checkpoint."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from ragged_batches import random_batch

from fastrl.filters import FILTERS
from fastrl.method import (
    MethodError,
    build_method,
    initial_method_state,
    method_problems,
    restore_method_state,
    save_method_state,
)
from fastrl.objectives import OBJECTIVES
from fastrl.schedules import SCHEDULES
from fastrl.schedules.replay import Replay
from fastrl.selectors import SELECTORS

METHODS = Path(__file__).parents[2] / "experiments" / "conf" / "method"
NAMES = sorted(path.stem for path in METHODS.glob("*.yaml"))
REGISTRIES = {"objective": OBJECTIVES, "prompts": FILTERS, "rollouts": SCHEDULES, "selector": SELECTORS}


@cache
def composed(name: str, *overrides: str) -> dict[str, Any]:
    """A method file with what the root config would give it."""
    with initialize_config_dir(str(METHODS), version_base="1.3"):
        root = ("+fastrl.tau=0.8", "+training.max_response_tokens=48")
        resolved: Any = OmegaConf.to_container(compose(name, [*root, *overrides]), resolve=True)
    del resolved["fastrl"], resolved["training"]
    return resolved


@pytest.fixture
def fastrl_config() -> dict[str, Any]:
    return copy.deepcopy(composed("fastrl"))


def test_the_methods_of_the_study_are_there() -> None:
    assert set(NAMES) >= {
        *("grpo", "dr_grpo", "dapo", "gspo", "cppo", "greso", "fastrl", "fastrl_dapo", "fastrl_gspo"),
        *("fastrl_without_mdap", "fastrl_without_ars", "advantage_only"),
        *("random_25", "random_50", "random_75", "cppo_2_kept"),
        *("pods", "gfpo", "mc_grpo", "dppo", "gspo_token", "dapo_overlong", "cppo_batch", "cppo_allocation"),
    }


@pytest.mark.parametrize("part", sorted(REGISTRIES))
def test_every_registered_part_has_a_file_and_every_file_a_part(part: str) -> None:
    assert {path.stem for path in (METHODS / part).glob("*.yaml")} == set(REGISTRIES[part])


@pytest.mark.parametrize("name", NAMES)
def test_every_method_file_composes_and_takes_a_step(name: str) -> None:
    config = composed(name)
    assert config["name"] == name
    assert config["label"]
    method = build_method(config)
    batch = random_batch(np.random.default_rng(0), 6, 8, continuous=False)
    advantages = method.objective.advantages(batch.rewards, batch.offsets)
    selection = method.selector.select(batch, advantages, np.random.default_rng(0))
    assert 0 < len(selection.kept) <= batch.n_trajectories
    # One rollout more where one is not trained on.
    assert method.rollouts.next_n(method.rollouts.initial_state()) == (9 if name == "mc_grpo" else 8)
    assert method.prompts.next_draw(method.prompts.initial_state(), 4) >= 4


@pytest.mark.parametrize(
    ("part", "option"), [(part, option) for part in sorted(REGISTRIES) for option in REGISTRIES[part]]
)
def test_every_part_can_be_put_into_grpo(part: str, option: str) -> None:
    values = ("rollouts.values=[8,4]",) if option == "replay" else ()
    values += ("rollouts.n=9",) if option == "mc_grpo" else ()
    config = composed("grpo", f"{part}={option}", *values)
    assert isinstance(getattr(build_method(config), part), REGISTRIES[part][option])


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("random_25", 6),
        ("random_50", 4),
        ("random_75", 2),
        ("cppo_2_kept", 2),
        ("cppo", 4),
    ],
)
def test_controls_keep_the_number_in_their_name(name: str, kept: int) -> None:
    batch = random_batch(np.random.default_rng(3), 1, 1, continuous=False)
    batch = type(batch)(("q",), np.array([0, 8]), batch.tokens[:0], np.zeros(9, dtype=np.int64), np.eye(8)[2])
    method = build_method(composed(name))
    advantages = method.objective.advantages(batch.rewards, batch.offsets)
    assert len(method.selector.select(batch, advantages, np.random.default_rng(0)).kept) == kept


def changed(config: dict[str, Any], **parts: Any) -> dict[str, Any]:
    config = copy.deepcopy(config)
    for path, value in parts.items():
        *sections, key = path.split("__")
        section = config
        for name in sections:
            section = section[name]
        section[key] = value
    return config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"selector__tua": 0.5},
            r"method\.selector\.tua: mdap has no such field; known: .*did you mean 'tau'\?",
        ),
        (
            {"selector__name": "mdab"},
            r"method\.selector\.name='mdab' is unknown; known: .*did you mean 'mdap'\?",
        ),
        ({"selektor": {"name": "all"}}, r"method\.selektor: unknown key; known: .*did you mean 'selector'\?"),
        (
            {"selector__tau": "high"},
            r"method\.selector\.tau='high': a value of type float is needed, got str",
        ),
        (
            {"selector__drop_zero_variance": 1},
            r"drop_zero_variance=1: a value of type bool is needed, got int",
        ),
        (
            {"selector__compare": "sed"},
            r"method\.selector\.compare='sed': known: retained, seed; did you mean 'seed'",
        ),
        ({"selector__tau": 1.5}, r"method\.selector \(mdap\): tau=1\.5; a threshold in \[0, 1\]"),
        ({"rollouts__n": True}, r"method\.rollouts\.n=True: a value of type int is needed, got bool"),
        ({"rollouts__n": 8.0}, r"method\.rollouts\.n=8\.0: a value of type int is needed, got float"),
        ({"rollouts": {"name": "replay", "values": "88"}}, r"values='88': a list of int is needed"),
        ({"rollouts": {"name": "fixed"}}, r"method\.rollouts\.n is missing; fixed needs it"),
        (
            {"rollouts": {"name": "fixed", "n": 1}},
            "a group of one trajectory has advantage 0; use at least 2",
        ),
        ({"rollouts": "ars"}, r"method\.rollouts must be a mapping with a name, got 'ars'"),
        ({"prune": "before"}, r"method\.prune='before': known: .*did you mean 'before_logprob'\?"),
        ({"objective__clip_hihg": 0.2}, r"method\.objective\.clip_hihg: grpo has no such field.*clip_high"),
        (
            {"selector": composed("cppo")["selector"]},
            "method.selector with 3 rollouts: pruning_rate=0.5 would keep 1.5 of 3",
        ),
    ],
)
def test_what_is_wrong_is_named(fastrl_config: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        build_method(changed(fastrl_config, **change))


def test_all_that_is_wrong_is_named_at_once(fastrl_config: dict[str, Any]) -> None:
    config = changed(fastrl_config, selector__tua=0.5, rollouts__name="arz", prune="never")
    del config["objective"]
    problems = method_problems(config)
    assert len(problems) == 4
    assert [problem.split()[0] for problem in problems] == [
        "method.objective",
        "method.prune='never':",
        "method.rollouts.name='arz'",
        "method.selector.tua:",
    ]


def test_an_int_stands_for_a_float_and_a_list_for_a_tuple(fastrl_config: dict[str, Any]) -> None:
    config = changed(fastrl_config, selector__tau=1, rollouts={"name": "replay", "values": [8, 4]})
    method = build_method(config)
    assert method.selector.tau == 1.0  # type: ignore[attr-defined]
    assert isinstance(method.rollouts, Replay)
    assert method.rollouts.values == (8, 4)


@pytest.mark.parametrize("name", NAMES)
def test_state_survives_a_checkpoint(name: str) -> None:
    method = build_method(composed(name))
    fresh = initial_method_state(method)
    batch = random_batch(np.random.default_rng(1), 6, 8, continuous=False)
    state = type(fresh)(
        prompts=method.prompts.observe(fresh.prompts, batch, (batch.rewards >= 1).astype(float), 1),
        rollouts=method.rollouts.observe(fresh.rollouts, batch.group_sizes),
    )
    assert restore_method_state(method, json.loads(json.dumps(save_method_state(method, state)))) == state


def test_a_state_of_another_schema_part_or_version_is_refused(fastrl_config: dict[str, Any]) -> None:
    method = build_method(fastrl_config)
    saved = save_method_state(method, initial_method_state(method))
    with pytest.raises(MethodError, match="has schema 99, this code reads 1"):
        restore_method_state(method, {**saved, "schema": 99})
    with pytest.raises(MethodError, match="rollouts state belongs to Ars, but the method has Fixed"):
        restore_method_state(build_method(composed("grpo")), saved)
    saved["rollouts"]["state"]["version"] = 7
    with pytest.raises(MethodError, match="rollouts state of Ars has version 7, this code reads 1"):
        restore_method_state(method, saved)


@pytest.mark.parametrize("key", ["prompts", "rollouts"])
@pytest.mark.parametrize("name", ["fastrl", "grpo", "greso", "dapo", "fastrl_without_mdap"])
def test_every_state_of_another_version_or_shape_is_refused(name: str, key: str) -> None:
    method = build_method(composed(name))
    saved = save_method_state(method, initial_method_state(method))
    for state, message in [
        ({**saved[key]["state"], "version": 0}, "has version 0, this code reads 1; resume with the version"),
        ({**saved[key]["state"], "more": 1}, "holds .*more.*; this code reads .*; resume with the version"),
        (None, f"the checkpoint's {key} state is .*, not a part's name with its state"),
    ]:
        with pytest.raises(MethodError, match=message):
            restore_method_state(method, {**saved, key: {**saved[key], "state": state}})
    with pytest.raises(MethodError, match=f"the checkpoint's {key} state is 'None'"):
        restore_method_state(method, {part: value for part, value in saved.items() if part != key})


def test_the_core_imports_nothing_heavy() -> None:
    code = (
        "import sys, fastrl, fastrl.method, fastrl.selectors, fastrl.alignment, fastrl.jaccard\n"
        "heavy = {'torch', 'numba', 'hydra', 'omegaconf', 'submitit', 'transformers', 'pandas', 'mlflow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
