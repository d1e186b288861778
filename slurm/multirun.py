"""The cells of a Hydra sweep, sent as a study of their own that the other commands know by name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from experiments.errors import UserError, listed
from experiments.plan import write_plan
from experiments.stage import STAGES
from experiments.study import SweepCell, plan_sweep
from slurm.decision import RETRIES
from slurm.submit import Outcome, Request, submit_study


def submit_sweep(cells: Sequence[SweepCell], retry: str | None, canary: bool) -> Outcome:
    """Send what is left of a sweep, and say how to follow it.

    retry, canary: as of `fastrl submit`. The same cells are the same study, so that a sweep may be launched
    again at any time. Raises UserError as `submit_study` does, and for an unknown retry.
    """
    chosen = next((known for known in RETRIES if known == retry), None)
    if retry is not None and chosen is None:
        raise UserError(
            f'There is no kind of retry called "{retry}".',
            "hydra.launcher.retry",
            f"options: {listed(RETRIES)}",
        )
    # Jobs start in folders of their own.
    root = Path(cells[0].config["paths"]["root"]).resolve()
    plan, configs = plan_sweep(cells)
    write_plan(root, plan)
    outcome = submit_study(plan, configs, root, Request(chosen, (), None, canary, STAGES, time.time()))
    for sent in outcome.arrays:
        print(f"job {sent.array.job_id}: {sent.array.name}, {len(sent.array.tasks)} task(s)")
    decision = outcome.decision
    print(
        f"stages: {decision.done} done, {len(decision.joined)} under way, {len(decision.send)} sent, "
        f"{len(decision.left)} ended badly (hydra.launcher.retry=all sends them again)"
    )
    print(f"fastrl status study={plan.study} paths.root={root} --watch")
    return outcome
