"""Small real stages to test the machinery with: a training that counts, and its evaluation."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from typing import Any

import yaml

from eval.datasets import load_questions
from eval.digests import result_digests, settings_digest
from experiments.atomic_files import write_json
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext, StageStopped
from experiments.step_log import append_step, cut_back

STAGES = {"train": "counting_stage:train", "evaluate": "counting_stage:evaluate"}

DATASET = yaml.safe_load(
    """
    name: laptop_geometry
    label: Laptop geometry
    source: laptop_geometry
    splits:
      seed: 0
      sizes: {train: 8, selection: 8, validation: 8, out_of_domain: 8}
      number_shares: {selection: 0.2, validation: 0.3, out_of_domain: 0.5}
    train_split: train
    validation_split: validation
    reward: {name: boxed_accuracy_format, format_weight: 0.5}
    """
)


def counting_config(seed: int = 0, method: str = "grpo", **training: Any) -> dict[str, Any]:
    """A resolved config whose training counts.

    training: steps, checkpoint_every, seconds (of a step), and what goes wrong: fail_at, kill_at (a step;
    once).
    """
    settings = {"steps": 6, "checkpoint_every": 2, "seconds": 0.0, "fail_at": 0, "kill_at": 0, **training}
    benchmark = {"name": "geometry", "label": "Geometry", "task": "laptop_geometry", "split": "validation"}
    return {
        "schema_version": 1,
        "seed": seed,
        "method": {"name": method, "label": method.upper()},
        "model": {"name": "counter"},
        "dataset": DATASET,
        "training": settings,
        "engine": {"name": "counting"},
        "benchmarks": {"geometry": {**benchmark, "dataset": DATASET, "seconds": 0.0}},
        "cluster": {"name": "local", "workers": None},
        "tracking": {"name": "none", "uri": ""},
        "paths": {"root": "results"},
    }


def train(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    settings = config["training"]
    checkpoint = run.checkpoints / "state.json"
    state: dict[str, Any] = {"step": 0, "value": ""}
    if checkpoint.exists():
        state = json.loads(checkpoint.read_text())
    cut_back(run.steps_path, state["step"])
    for step in range(state["step"] + 1, settings["steps"] + 1):
        if context.stop_requested():
            write_json(checkpoint, state)
            raise StageStopped
        time.sleep(settings["seconds"])
        if step == settings["fail_at"]:
            raise ValueError(f"step {step} can't be counted")
        if step == settings["kill_at"] and context.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        value = hashlib.sha256(f"{state['value']} {config['seed']} {step}".encode()).hexdigest()
        state = {"step": step, "value": value}
        append_step(run.steps_path, {**state, "time": time.time(), "val/accuracy": step / settings["steps"]})
        context.announce(f"counted step {step}")
        if step % settings["checkpoint_every"] == 0:
            write_json(checkpoint, state)
    write_json(checkpoint, state)
    write_json(run.final_checkpoint / "policy.json", state)


def evaluate(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    name = context.stage.partition("-")[2]
    benchmark = config["benchmarks"][name]
    time.sleep(benchmark["seconds"])
    if context.stop_requested():
        raise StageStopped
    policy = json.loads((run.final_checkpoint / "policy.json").read_text())
    questions = load_questions(benchmark["dataset"], benchmark["split"])
    results = {
        "schema": 1,
        "benchmark": name,
        "settings_digest": settings_digest(benchmark),
        "seed": config["seed"],
        "digests": result_digests(benchmark["task"], questions, None, policy["value"]),
        "decodings": {"greedy": {"metrics": {"accuracy": int(policy["value"][:4], 16) / 65536}}},
        "seconds": time.time(),
    }
    write_json(run.results_path(name), results)
