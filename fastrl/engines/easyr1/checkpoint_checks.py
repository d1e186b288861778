"""What must hold of a checkpoint folder before EasyR1 resumes from it, or a policy is exported from it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

TRACKER = "checkpoint_tracker.json"
OWNER = "run.json"
"""Names the run that a checkpoint folder belongs to."""

_WORLD = re.compile(r"model_world_size_(\d+)_rank_\d+\.pt")
_CPU_RANK = re.compile(r"random_state_(\d+)\.pt")


class CheckpointProblem(RuntimeError):
    """A checkpoint folder that can't be resumed from; EasyR1 would start afresh, or fail deep inside."""


def claim(checkpoints: Path, run: str) -> None:
    """Make a checkpoint folder a run's own, for good; once is enough.

    run: what tells it from others, its run id. Raises CheckpointProblem when the folder is another's, whose
    checkpoints EasyR1 would go on from and delete.
    """
    checkpoints.mkdir(parents=True, exist_ok=True)
    path = checkpoints / OWNER
    draft = checkpoints / f".{OWNER}.{secrets.token_hex(4)}"
    draft.write_text(json.dumps({"run": run}), encoding="utf-8")
    try:
        os.link(draft, path)  # of two that come at once, one fails
        return
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    try:
        owner = str(json.loads(path.read_text(encoding="utf-8"))["run"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointProblem(
            f"{path} is damaged ({error}); write {json.dumps({'run': run})} into it if the checkpoints are "
            "this run's, or take another folder"
        ) from error
    if owner != run:
        raise CheckpointProblem(
            f"{checkpoints} holds the checkpoints of the run {owner}, and this is {run}: EasyR1 would go on "
            "from that policy; give each run a folder of its own"
        )


def keep_own_logs(checkpoints: Path) -> None:
    """Set aside EasyR1's own logs, which each start begins anew: the first start's become `…_1`."""
    for name in ("experiment_log.jsonl", "generations.log"):
        log = checkpoints / name
        if log.is_file() and log.stat().st_size:
            kept = (path.stem.rpartition("_")[2] for path in checkpoints.glob(f"{log.stem}_*{log.suffix}"))
            last = max((int(number) for number in kept if number.isdecimal()), default=0)
            log.rename(log.with_name(f"{log.stem}_{last + 1}{log.suffix}"))


def resumable_step(checkpoints: Path, ranks: int) -> int:
    """The step that EasyR1 will go on after; 0 for an empty folder.

    Raises CheckpointProblem when the tracker names a checkpoint that is missing or incomplete (EasyR1 would
    silently train from the start), or one that another number of ranks wrote (it can't be loaded), and when
    there are several checkpoints and no tracker.
    """
    tracker = checkpoints / TRACKER
    if not tracker.is_file():
        leftovers = sorted(checkpoints.glob("global_step_*"))
        if len(leftovers) > 1:
            raise CheckpointProblem(
                f"{checkpoints} holds {len(leftovers)} checkpoints, but no {TRACKER} to name the newest: "
                "EasyR1 would train from the start; name its step in that file as last_global_step"
            )
        # Killed while the first checkpoint was being written: there is nothing to lose but that.
        for leftover in leftovers:
            shutil.rmtree(leftover)
        return 0
    try:
        step = int(json.loads(tracker.read_text(encoding="utf-8"))["last_global_step"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointProblem(
            f"{tracker} is damaged ({error}); name the newest global_step_* folder in it as last_global_step"
        ) from error
    folder = checkpoints / f"global_step_{step}"
    for needed in (folder / "actor", folder / "dataloader.pt"):
        if not needed.exists():
            raise CheckpointProblem(
                f"{tracker} names step {step}, but {needed} is missing: EasyR1 would train from the start; "
                "restore it, or name an older step in the tracker"
            )
    written = _ranks_of(folder / "actor")
    if written != ranks:
        raise CheckpointProblem(
            f"{folder} was written by {written} ranks, and this run has {ranks}: a sharded checkpoint can't "
            f"change its world size; set engine.nodes * engine.gpus_per_node to {written}"
        )
    return step


def export_policy(actor: Path, destination: Path, easyr1_home: Path | None) -> None:
    """Write the trained policy as a Hugging Face folder, by EasyR1's own merger where weights are sharded.

    Raises CheckpointProblem when the merger is needed and not found, or fails.
    """
    merged = actor / "huggingface"
    if not any(merged.glob("*.safetensors")):
        merger = easyr1_home / "scripts" / "model_merger.py" if easyr1_home else None
        if merger is None or not merger.is_file():
            raise CheckpointProblem(
                f"{actor} holds sharded weights, and EasyR1's scripts/model_merger.py merges them: set "
                "engine.home to a checkout of EasyR1"
            )
        result = subprocess.run(
            [sys.executable, str(merger), "--local_dir", str(actor)],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise CheckpointProblem(f"{merger} failed on {actor}:\n{result.stderr[-2000:]}")
    draft = destination.with_name(f".{destination.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(merged, draft)
    draft.replace(destination)


def _ranks_of(actor: Path) -> int:
    names = [path.name for path in actor.iterdir()]
    sharded = [int(match[1]) for name in names if (match := _WORLD.fullmatch(name))]
    if sharded:
        return sharded[0]
    return sum(bool(_CPU_RANK.fullmatch(name)) for name in names)
