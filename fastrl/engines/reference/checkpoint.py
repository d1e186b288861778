"""Checkpoints of a training run: complete or not there at all.

A checkpoint is the folder `step_<N>` with

    policy.safetensors   the trained float32 weights by parameter name, without a frozen vision tower's
    optimizer.pt         AdamW state
    state.json           step, seed, data position, method state, and the fingerprints of the other two files

There is no generator state: every random stream is a function of seed, step and purpose (`seeds.py`). A
folder is written under a temporary name and renamed when it is whole. `final` is a Hugging Face folder,
with the processor of an image-text model.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from fastrl.engines.reference.data_order import DataPosition
from fastrl.engines.reference.optimizer import PolicyOptimizer
from fastrl.engines.reference.policy import Policy, Vision
from fastrl.engines.reference.step import RunState
from fastrl.method import Method, restore_method_state, save_method_state

SCHEMA = 1
_WEIGHTS, _OPTIMIZER, _STATE = "policy.safetensors", "optimizer.pt", "state.json"

_PROCESSOR_SUFFIXES = (".json", ".jinja", ".txt", ".model")
_MODEL_FILES = ("config.json", "generation_config.json", "model.safetensors.index.json")

_log = logging.getLogger(__name__)


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written, or that belongs to another run."""


@dataclass(frozen=True)
class PreparedCheckpoint:
    """A whole checkpoint under its temporary name; `commit` gives it its own."""

    temporary: Path
    target: Path

    def commit(self, keep: int) -> None:
        """Put the checkpoint in place and remove all but the newest `keep`."""
        self.temporary.rename(self.target)
        for old in _folders(self.target.parent)[keep:]:
            shutil.rmtree(old)


def checkpointed_step(checkpoints: Path) -> int:
    """The step that `train` would resume after: that of the newest complete checkpoint, 0 without one."""
    newest = newest_complete(checkpoints)
    return 0 if newest is None else _step_of(newest)


def newest_complete(checkpoints: Path) -> Path | None:
    """The newest checkpoint whose files are all whole. Warns of newer ones that are not."""
    for folder in _folders(checkpoints):
        problem = _problem_with(folder)
        if problem is None:
            return folder
        _log.warning("checkpoint %s is unusable (%s); going back to the one before it", folder, problem)
    return None


def checkpoint_to_resume(checkpoints: Path) -> Path | None:
    """The newest complete checkpoint, after removing the newer ones: their steps will be done again."""
    newest = newest_complete(checkpoints)
    for folder in _folders(checkpoints):
        if folder == newest:
            break
        shutil.rmtree(folder)
    return newest


def prepare_checkpoint(
    checkpoints: Path, method: Method, state: RunState, seed: int, optimizer: PolicyOptimizer
) -> PreparedCheckpoint:
    """Write a checkpoint under a temporary name. CheckpointError, with nothing left behind, if that fails."""
    target = checkpoints / f"step_{state.step}"
    with _temporary_for(target) as temporary:
        weights = {name: master.detach().contiguous() for name, master in optimizer.masters.items()}
        save_file(weights, temporary / _WEIGHTS)
        torch.save(optimizer.state(), temporary / _OPTIMIZER)
        content = {
            "schema": SCHEMA,
            "step": state.step,
            "seed": seed,
            "position": asdict(state.position),
            "method": save_method_state(method, state.method),
            "files": {name: _fingerprint(temporary / name) for name in (_WEIGHTS, _OPTIMIZER)},
        }
        (temporary / _STATE).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return PreparedCheckpoint(temporary, target)


def restore_checkpoint(
    folder: Path, method: Method, seed: int, optimizer: PolicyOptimizer, device: torch.device
) -> RunState:
    """Load weights and optimizer state, and return the rest.

    CheckpointError if the checkpoint is of another seed, schema or policy.
    """
    content = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    for key, expected in (("schema", SCHEMA), ("seed", seed)):
        if content[key] != expected:
            raise CheckpointError(
                f"{folder} has {key} {content[key]!r}, this run has {expected!r}; give another checkpoint "
                "folder, or remove this one to start anew"
            )
    weights = load_file(folder / _WEIGHTS, device=str(device))
    shapes = {name: weight.shape for name, weight in weights.items()}
    if shapes != {name: master.shape for name, master in optimizer.masters.items()}:
        raise CheckpointError(
            f"{folder} holds the weights of another policy; resume with the one that the run was started from"
        )
    optimizer.restore(weights, torch.load(folder / _OPTIMIZER, map_location=device, weights_only=True))
    return RunState(
        step=content["step"],
        position=DataPosition(**content["position"]),
        method=restore_method_state(method, content["method"]),
    )


def final_policy(checkpoints: Path) -> Path:
    """Where the trained policy is, once the run has finished."""
    return checkpoints / "final"


def save_final(checkpoints: Path, policy: Policy) -> None:
    """Save the policy as a Hugging Face folder. CheckpointError, with nothing left behind, if that fails."""
    target = final_policy(checkpoints)
    with _temporary_for(target) as temporary:
        policy.model.save_pretrained(temporary)
        if policy.vision is None:
            policy.tokenizer.save_pretrained(temporary)
        else:
            _save_processor(policy.vision, temporary)
    temporary.rename(target)


def _save_processor(vision: Vision, folder: Path) -> None:
    """The files of tokenizer, image processor, chat template and config, as the starting policy has them.

    What this version of transformers would write need not be read by another's, such as a trainer's.
    """
    if vision.folder is None:
        vision.processor.save_pretrained(folder)
        return
    for file in vision.folder.iterdir():
        if file.suffix in _PROCESSOR_SUFFIXES and file.name not in _MODEL_FILES:
            shutil.copyfile(file, folder / file.name)
    saved = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    started = json.loads((vision.folder / "config.json").read_text(encoding="utf-8"))
    config = _with_dtype(started, saved["dtype"])
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _with_dtype(config: dict[str, Any], dtype: str) -> dict[str, Any]:
    return {
        key: _with_dtype(value, dtype)
        if isinstance(value, dict)
        else (dtype if key in ("dtype", "torch_dtype") else value)
        for key, value in config.items()
    }


@contextmanager
def _temporary_for(target: Path) -> Iterator[Path]:
    temporary = target.with_name(f".{target.name}.writing")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
    except Exception as error:
        shutil.rmtree(temporary, ignore_errors=True)
        # tokenizers reports the system's errors as bare exceptions, by their text.
        if not isinstance(error, (OSError, RuntimeError, SafetensorError)) and "os error" not in str(error):
            raise
        raise CheckpointError(
            f"cannot write {target}: {error}; free space or fix the permissions there, then resume the run"
        ) from error


def _problem_with(folder: Path) -> str | None:
    """Why a checkpoint is not whole; None if it is."""
    try:
        content = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        for name, fingerprint in content["files"].items():
            if _fingerprint(folder / name) != fingerprint:
                return f"{name} is not what was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        return f"{_STATE} cannot be read: {error!r}"
    return None


def _fingerprint(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _folders(checkpoints: Path) -> list[Path]:
    """The checkpoint folders, newest first."""
    folders = [folder for folder in checkpoints.glob("step_*") if folder.name.removeprefix("step_").isdigit()]
    return sorted(folders, key=_step_of, reverse=True)


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step_"))
