"""A run's folder with recorded rollouts of a tiny policy, made without training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from eval.datasets import load_questions
from experiments.compose import compose_cell
from experiments.rollout_files import write_rollouts
from experiments.run_directory import RunDirectory
from fastrl.engines.reference.records import RolloutRecord
from fastrl.rollouts import Rollouts

STEPS, QUESTIONS, N = 4, 4, 8
TEXT_POLICY = (
    "model=laptop_llama",
    "dataset=laptop_geometry",
    "engine=reference",
    "benchmark=laptop_geometry",
)
STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor")


def step_rollouts(step: int, question_ids: tuple[str, ...], vocabulary: int = 18) -> Rollouts:
    rng = np.random.default_rng(step)
    lengths = rng.integers(1, 7, QUESTIONS * N)
    return Rollouts(
        question_ids,
        np.arange(QUESTIONS + 1) * N,
        rng.integers(2, vocabulary, int(lengths.sum())).astype(np.int32),
        np.concatenate([[0], np.cumsum(lengths)]),
        rng.integers(0, 2, QUESTIONS * N).astype(np.float64),
    )


def recorded_run(root: Path, recorded: bool = True, policy: Sequence[str] = TEXT_POLICY) -> RunDirectory:
    """Four steps in two epochs; a step costs a second a token in each stage."""
    settings = {"questions_per_step": QUESTIONS, "record_rollouts_every": int(recorded)}
    config = compose_cell([*policy, *(f"training.{key}={value}" for key, value in settings.items())])
    run = RunDirectory(root / "runs" / "grpo-recorded")
    run.path.mkdir(parents=True)
    run.config_path.write_text(yaml.safe_dump(config), encoding="utf-8")
    ids = tuple(question.id for question in load_questions(config["dataset"], "train")[:QUESTIONS])
    lines = []
    for step in range(1, STEPS + 1):
        rollouts = step_rollouts(step, ids)
        total = rollouts.n_trajectories
        everyone = np.ones(total, dtype=bool)
        record = RolloutRecord(
            rollouts, ("",) * total, rollouts.rewards, everyone, rollouts.rewards, everyone, ("",) * total
        )
        if recorded:
            write_rollouts(run.rollouts, step, record)
        tokens = len(rollouts.tokens)
        line = {"step": step, "epoch": (step - 1) // 2, "actor/kl": 0.1, "tokens/generated": tokens}
        line |= {"tokens/trained": tokens, "tokens/total": 4 * tokens}
        line |= {f"cpu_s/{stage}": float(tokens) for stage in STAGES}
        lines.append(json.dumps(line) + "\n")
    run.steps_path.write_text("".join(lines), encoding="utf-8")
    return run
