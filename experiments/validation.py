"""Combinations of settings that can't work, found before anything runs.

Each settings dataclass checks its own fields; here are the rules that span several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from experiments.policies.settings import BUILT_POLICIES, LaptopVision
from experiments.schema import METHOD_PARTS, Problem
from fastrl.engines.easyr1.settings import EASYR1_ENGINES, easyr1_settings
from fastrl.engines.easyr1.translation import easyr1_problems
from fastrl.method import method_problems

_NAMED_GROUPS = ("method", "model", "dataset", "training", "engine", "cluster", "tracking")
_KEY = re.compile(r"[\w.]+")


def impossible_combinations(config: Mapping[str, Any]) -> list[Problem]:
    """What can't work together in a config whose fields are all well-typed; empty when everything can."""
    problems = [_method_problem(complaint) for complaint in method_problems(config["method"])]
    if problems:
        return problems
    return [
        *_policy_problems(config),
        *_engine_problems(config),
        *_batch_problems(config),
        *_length_problems(config),
    ]


def misnamed_files(config: Mapping[str, Any], choices: Mapping[str, Any]) -> list[Problem]:
    """Files whose `name` is not their own, as in a copy: two configurations would go by one name.

    choices: the option chosen of each config group.
    """
    names = [(group, config[group]["name"], choices[group]) for group in _NAMED_GROUPS]
    names += [(f"benchmarks.{key}", own["name"], key) for key, own in config["benchmarks"].items()]
    return [
        Problem(f"{key}.name", f'{key}.name="{name}" is not the name of its file', f"write name: {file}")
        for key, name, file in names
        if name != file
    ]


def _method_problem(complaint: str) -> Problem:
    key = _KEY.match(complaint)
    return Problem(key[0] if key else "method", complaint, "")


def _policy_problems(config: Mapping[str, Any]) -> list[Problem]:
    """Data, engines and benchmarks that a policy built here can't be used with."""
    model, engine = config["model"], config["engine"]["name"]
    if model["kind"] != "built":
        return []
    policy = BUILT_POLICIES[model["builder"]]
    problems = []
    if config["dataset"]["source"] != policy.warm_up_set:
        what = (
            f"model={model['name']} is warmed up on {policy.warm_up_set}, not on {config['dataset']['name']}"
        )
        problems.append(Problem("dataset", what, f"choose dataset={policy.warm_up_set}, or another model"))
    if engine not in (policy.engine, *EASYR1_ENGINES):
        what = f"engine={engine} is not for model={model['name']}"
        problems.append(Problem("engine", what, f"choose engine={policy.engine}"))
    for name, benchmark in config["benchmarks"].items():
        if benchmark["dataset"].get("source") == LaptopVision.warm_up_set and policy is not LaptopVision:
            what = f"benchmark {name} shows images, and model={model['name']} sees none"
            problems.append(Problem(f"benchmarks.{name}", what, "choose the benchmarks by benchmark=[...]"))
    return problems


def _engine_problems(config: Mapping[str, Any]) -> list[Problem]:
    """What the engine can't do of a method or its training."""
    if config["engine"]["name"] not in EASYR1_ENGINES:
        return []
    return [Problem(*problem) for problem in easyr1_problems(config)]


def _ranks(engine: Mapping[str, Any]) -> int:
    """Data-parallel ranks that a step's trajectories divide over."""
    if engine["name"] in EASYR1_ENGINES:
        return easyr1_settings(engine).data_parallel
    return int(engine["data_parallel"])


def _batch_problems(config: Mapping[str, Any]) -> list[Problem]:
    """Questions, updates and ranks that don't divide, and data sets smaller than a step."""
    training, dataset = config["training"], config["dataset"]
    questions, updates, ranks = (
        training["questions_per_step"],
        training["updates"],
        _ranks(config["engine"]),
    )
    problems = []
    if questions % ranks:
        what = f"training.questions_per_step={questions} does not divide over the engine's {ranks} ranks"
        problems.append(Problem("training.questions_per_step", what, f"use a multiple of {ranks}"))
    rollouts = METHOD_PARTS["rollouts"][config["method"]["rollouts"]["name"]]
    fewest = min(rollouts(**_fields(config["method"]["rollouts"])).possible_n())
    if updates * ranks > questions * fewest:
        what = (
            f"training.updates={updates} on {ranks} rank(s) need {updates * ranks} trajectories a step, "
            f"but a step may sample only {questions * fewest} ({questions} questions x {fewest} rollouts)"
        )
        problems.append(
            Problem("training.updates", what, f"use at most {questions * fewest // ranks} updates")
        )
    split = dataset["train_split"]
    size = dataset.get("splits", {}).get("sizes", {}).get(split)
    if size is not None and size < questions:
        what = (
            f"dataset.splits.sizes.{split}={size} questions do not fill a step of "
            f"training.questions_per_step={questions}"
        )
        problems.append(Problem(f"dataset.splits.sizes.{split}", what, f"use at least {questions} questions"))
    return problems


def _length_problems(config: Mapping[str, Any]) -> list[Problem]:
    """Token budgets beyond the positions that a policy built here has."""
    architecture = config["model"].get("architecture", {})
    path = "architecture.text" if "text" in architecture else "architecture"
    positions = architecture.get("text", architecture).get("max_positions")
    prompt, response = config["training"]["max_prompt_tokens"], config["training"]["max_response_tokens"]
    if positions is None or prompt + response <= positions:
        return []
    what = (
        f"training.max_prompt_tokens={prompt} and training.max_response_tokens={response} exceed "
        f"model.{path}.max_positions={positions}"
    )
    return [
        Problem("training.max_response_tokens", what, f"use at most {positions - prompt} response tokens")
    ]


def _fields(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in part.items()
        if key != "name"
    }
