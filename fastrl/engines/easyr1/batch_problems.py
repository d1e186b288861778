"""Batches that EasyR1 can't share out over ranks, updates and micro-batches, found before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastrl.engines.easyr1.settings import easyr1_settings
from fastrl.engines.easyr1.update_plan import UpdatePlan, rank_multiple
from fastrl.method import build_method

Problem = tuple[str, str, str]
"""Key, what, way out."""


def initial_rollouts(method: Mapping[str, Any]) -> int:
    """Rollouts per question of a method's first step, by which EasyR1 sizes its updates."""
    rollouts = method["rollouts"]
    return int(rollouts["n"] if "n" in rollouts else rollouts["values"][0])


def batch_problems(config: Mapping[str, Any]) -> list[Problem]:
    """What is wrong; config: a resolved cell whose updates divide its questions a step.

    Ranks that do not divide the questions are no engine's to take, and left to whoever checks them for all.
    """
    training, engine = config["training"], easyr1_settings(config["engine"])
    questions, ranks = training["questions_per_step"], engine.data_parallel
    if questions % ranks:
        return []
    mini_batch = questions // training["updates"] * initial_rollouts(config["method"])
    problems = []
    if mini_batch % ranks:
        what = f"the engine's {ranks} ranks do not divide the {mini_batch} trajectories of an update"
        way_out = (
            f"use a number of nodes * gpus_per_node that divides {mini_batch}, or fewer training.updates"
        )
        problems.append(("engine.gpus_per_node", what, way_out))
    elif mini_batch // ranks % engine.micro_batch_update:
        what = (
            f"engine.micro_batch_update={engine.micro_batch_update} on {ranks} rank(s) does not divide the "
            f"{mini_batch} trajectories of an update"
        )
        problems.append(("engine.micro_batch_update", what, f"use a divisor of {mini_batch // ranks}"))
    if engine.draw_questions and engine.draw_questions % ranks:
        what = (
            f"engine.draw_questions={engine.draw_questions} does not divide over the engine's {ranks} ranks"
        )
        problems.append(("engine.draw_questions", what, f"use a multiple of {ranks}, or null"))
    problems += _scoring_problems(config)
    return problems or _smallest_step_problems(config, mini_batch)


def _scoring_problems(config: Mapping[str, Any]) -> list[Problem]:
    """Micro-batches of log-probs: EasyR1 wants them to divide a step, and those of one size a rank's part."""
    method, engine = config["method"], easyr1_settings(config["engine"])
    questions, size = config["training"]["questions_per_step"], engine.micro_batch_experience
    key, whole = "engine.micro_batch_experience", questions * initial_rollouts(method)
    if whole % size:
        what = f"{key}={size} does not divide the {whole} trajectories of a step"
        return [(key, what, f"use a divisor of {whole}")]
    if method["prune"] == "before_logprob" or engine.dynamic_batching:
        return []
    share = questions // engine.data_parallel
    for rollouts in build_method(method).rollouts.possible_n():
        if share * rollouts % size:
            what = (
                f"{key}={size} does not divide the {share * rollouts} trajectories of a rank, {rollouts} a "
                "question, that method.prune=after_logprob scores"
            )
            return [(key, what, f"use a divisor of {share}, or method.prune=before_logprob")]
    return []


def _smallest_step_problems(config: Mapping[str, Any], mini_batch: int) -> list[Problem]:
    """A step of the fewest rollouts that is too small for its updates, with nothing pruned."""
    training, engine = config["training"], easyr1_settings(config["engine"])
    mode, updates, ranks = training["update_mode"], training["updates"], engine.data_parallel
    plan = UpdatePlan(mode, updates, mini_batch, ranks, rank_multiple(engine, mode, updates), False)
    fewest = min(build_method(config["method"]).rollouts.possible_n())
    sampled = training["questions_per_step"] * fewest
    if plan.divisor() <= sampled:
        return []
    what = (
        f"engine.micro_batch_update={engine.micro_batch_update} and engine.micro_batch_experience="
        f"{engine.micro_batch_experience} on {ranks} rank(s) train in multiples of {plan.divisor()} "
        f"trajectories, and a step may sample only {sampled} ({fewest} a question)"
    )
    way_out = "use smaller micro-batches, fewer training.updates or more training.questions_per_step"
    return [("engine.micro_batch_update", what, way_out)]
