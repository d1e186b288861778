"""A training that counts, and to which an accident happens on its first attempt."""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import Any

import counting_stage

from experiments import stage_function
from experiments.atomic_files import write_file
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext

STAGES = {"train": "accident_stage:train", "evaluate": "accident_stage:evaluate"}
AT_STEP = 3
_LONGEST = 300.0


def train(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    """`training.accident` names what happens after step 3 of the first attempt."""
    context.announce(f"code: {stage_function.__file__}")
    accident = config["training"]["accident"]
    if context.attempt == 1 and accident not in ("none", "evaluation_stall"):
        settings = {**config["training"], "steps": AT_STEP}
        counting_stage.train(run, {**config, "training": settings}, context)
        (run.final_checkpoint / "policy.json").unlink()
        happen(accident, run, context)
    counting_stage.train(run, config, context)


def evaluate(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    if context.attempt == 1 and config["training"]["accident"] == "evaluation_stall":
        time.sleep(_LONGEST)
    counting_stage.evaluate(run, config, context)


def happen(accident: str, run: RunDirectory, context: StageContext) -> None:
    if accident == "raise":
        raise ValueError("step 4 can't be counted")
    if accident == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if accident == "exit":
        os._exit(7)
    if accident == "job_killed":
        os.kill(os.getppid(), signal.SIGKILL)
    if accident == "memory":
        taken = b"x" * (500 << 20)
        time.sleep(_LONGEST)
        context.announce(str(len(taken)))
    if accident == "full_disk":
        # The system refuses to write more, as a full disk or a quota does.
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        write_file(run.checkpoints / "optimizer", b"x" * 100_000)
    if accident in ("stall", "deaf"):
        time.sleep(_LONGEST)
    if accident in ("wait", "job_killed"):
        end = time.monotonic() + _LONGEST
        while not context.stop_requested() and time.monotonic() < end:
            time.sleep(0.05)
