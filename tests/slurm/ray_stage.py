"""A training over the nodes of a job: it counts them, runs a task on each, and has an accident."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import counting_stage
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from experiments.atomic_files import write_json
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext

STAGES = {"train": "ray_stage:train", "evaluate": "counting_stage:evaluate"}
_LONGEST = 240.0


def train(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    """`training.accident`, on the first attempt: `wait` for a stop, `need` the other node, or `raise`."""
    ray.init()
    try:
        write_json(
            run.path / f"nodes-{context.attempt}.json", {"address": os.environ["RAY_ADDRESS"], **_visit()}
        )
        accident = config["training"]["accident"] if context.attempt == 1 else "none"
        if accident == "raise":
            raise ValueError("the driver can't go on")
        end = time.monotonic() + _LONGEST
        while accident in ("wait", "need") and not context.stop_requested() and time.monotonic() < end:
            if accident == "need":
                _visit()
            time.sleep(0.1)
        counting_stage.train(run, config, context)
    finally:
        ray.shutdown()


def _visit() -> dict[str, Any]:
    """The nodes and what a task on each says of its place."""
    return {
        node["NodeName"]: {
            "resources": {name: node["Resources"].get(name, 0) for name in ("CPU", "GPU")},
            **json.loads(ray.get(_place.options(scheduling_strategy=_on(node)).remote(), timeout=60.0)),
        }
        for node in ray.nodes()
        if node["Alive"]
    }


def _on(node: dict[str, Any]) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)


@ray.remote(num_cpus=1)
def _place() -> str:
    return json.dumps({"node": os.environ["SLURMD_NODENAME"], "step": os.environ["SLURM_STEP_ID"]})
