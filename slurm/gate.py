"""The job between a canary and the rest: `python -m slurm.gate ROOT RUN_ID`.

It ends well when the canary's training has finished its first step, badly when the canary ended before; its
walltime bounds the wait. The rest waits for it with afterok.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from experiments.run_directory import RunDirectory
from slurm.client import SlurmError, call
from slurm.ledger import newest, submissions
from slurm.queue import ACTIVE

_POLL_SECONDS = 2.0
_FORGOTTEN = "Invalid job id"
"""What `squeue` says of a job that ended long ago."""


def main(arguments: list[str]) -> int:
    root, run_id = Path(arguments[0]), arguments[1]
    run = RunDirectory(root / "runs" / run_id)
    task = str(newest(submissions(root), {})[run_id, "train"].task)
    while True:
        # Looked at in this order, the last step of a short training is never missed.
        ended = _has_ended(task)
        if any(record["step"] >= 1 for record in run.steps()):
            print("the canary has finished a training step", flush=True)
            return 0
        if ended:
            print("the canary ended before its first step; what waits for it is cancelled", flush=True)
            return 1
        time.sleep(_POLL_SECONDS)


def _has_ended(task: str) -> bool:
    """Whether Slurm says so. While it gives no answer the job may be alive; the walltime bounds the wait."""
    try:
        states = call(["squeue", "-h", "-r", "-j", task, "-o", "%T"]).split()
    except SlurmError as error:
        return _FORGOTTEN in error.what
    return not any(state in ACTIVE for state in states)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
