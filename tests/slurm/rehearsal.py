"""Studies of counting cells for a real Slurm, what they must end like, and bounded waiting."""

from __future__ import annotations

import copy
import hashlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from experiments.identity import run_id
from experiments.plan import Plan
from experiments.run_directory import RunDirectory
from slurm.overview import Overview, study_overview
from slurm.submit import Outcome, Request, submit_study

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "experiments"))

from accident_stage import STAGES  # noqa: E402
from counting_stage import counting_config  # noqa: E402
from counting_study import counting_plan  # noqa: E402

STEPS = 6
TRAIN, EVALUATE = "train", "evaluate-geometry"

CLUSTER: dict[str, Any] = yaml.safe_load(
    """
    name: rehearsal
    workers: null
    slurm:
      partition: gpu
      account: null
      qos: null
      constraint: null
      gpu_request: gres
      gpu_type: null
      shapes:
        train: {gpus: 0, cpus: 1, memory: 1G, minutes: 30, nodes: 1}
        evaluate: {gpus: 0, cpus: 1, memory: 1G, minutes: 30}
        report: {gpus: 0, cpus: 1, memory: 1G, minutes: 30}
      parallelism: null
      max_array_size: null
      signal_seconds: 20
      max_requeues: 3
      stall_minutes: 20
      ray_join_seconds: 60
      python: {control: null, train: null, evaluate: null}
      setup: []
      environment: {}
      shared_paths: []
      extra: {nodelist: node1}
    """
)
CLUSTER["slurm"]["environment"]["PYTHONPATH"] = f"{TESTS / 'slurm'}:{TESTS / 'experiments'}"


def cluster_with(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster settings of these tests with some changed, by dotted key below `slurm`."""
    cluster = copy.deepcopy(CLUSTER)
    for key, value in changes.items():
        *path, last = key.split(".")
        place = cluster["slurm"]
        for step in path:
            place = place[step]
        place[last] = value
    return cluster


def cell_config(
    seed: int, accident: str = "none", changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    config = counting_config(seed, "grpo", steps=STEPS, checkpoint_every=2, accident=accident)
    return {**config, "cluster": cluster_with(changes or {})}


def study(configs: list[dict[str, Any]], name: str = "counting") -> tuple[Plan, dict[str, dict[str, Any]]]:
    plan = replace(counting_plan(configs), study=name)
    return plan, {run_id(config): config for config in configs}


def send(root: Path, configs: list[dict[str, Any]], name: str = "counting", **wishes: Any) -> Outcome:
    """`fastrl submit`, with the counting stages."""
    defaults: dict[str, Any] = {"retry": None, "only": (), "limit": None, "canary": False, "stages": STAGES}
    request = Request(**{**defaults, **wishes}, now=time.time())
    return submit_study(*study(configs, name), root, request)


def look(root: Path, configs: list[dict[str, Any]], name: str = "counting") -> Overview:
    return study_overview(study(configs, name)[0], root.resolve())


def states(overview: Overview) -> list[dict[str, str]]:
    """Each cell's stages with their states."""
    return [{stage: each.verdict.state for stage, each in view.stages.items()} for view in overview.cells]


def until(found: Callable[[], Any], what: str, seconds: float = 150.0) -> Any:
    """Wait until something is true and return it; fail, saying what was waited for."""
    end = time.monotonic() + seconds
    while (start := time.monotonic()) < end:
        if result := found():
            return result
        # A look at Slurm takes its time from the jobs that are waited for: one core in three at most.
        time.sleep(max(0.2, 2 * (time.monotonic() - start)))
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


def run_of(root: Path, config: dict[str, Any]) -> RunDirectory:
    return RunDirectory(root.resolve() / "runs" / run_id(config))


def outcome_of(root: Path, config: dict[str, Any]) -> tuple[list[tuple[int, str]], float]:
    """What a run came to: its steps, and the accuracy of its evaluation."""
    run = run_of(root, config)
    steps = [(record["step"], record["value"]) for record in run.steps()]
    results = run.results("geometry")
    assert results is not None
    return steps, results["decodings"]["greedy"]["metrics"]["accuracy"]


def expected_of(config: dict[str, Any]) -> tuple[list[tuple[int, str]], float]:
    """What an undisturbed run comes to."""
    value, steps = "", []
    for step in range(1, STEPS + 1):
        value = hashlib.sha256(f"{value} {config['seed']} {step}".encode()).hexdigest()
        steps.append((step, value))
    return steps, int(value[:4], 16) / 65536
