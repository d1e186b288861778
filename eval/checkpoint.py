"""A checkpoint to evaluate: a Hugging Face folder, checked and identified before anything heavy is loaded."""

from __future__ import annotations

import hashlib
from pathlib import Path

_WHOLE = 16 * 2**20
_END = 2**20


class CheckpointError(ValueError):
    """A checkpoint that is not there or not whole."""


def check_checkpoint(folder: Path) -> None:
    """Raise CheckpointError, with the way out, unless `folder` holds a config, weights and a tokenizer."""
    if not folder.is_dir():
        raise CheckpointError(
            f"there is no checkpoint at {folder}; train the run first, or name the folder of a trained policy"
        )
    needed = {
        "config.json": ["config.json"],
        "weights (*.safetensors or pytorch_model*.bin)": ["*.safetensors", "pytorch_model*.bin"],
        "a tokenizer (tokenizer.json or tokenizer_config.json)": ["tokenizer.json", "tokenizer_config.json"],
    }
    for what, patterns in needed.items():
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            raise CheckpointError(
                f"the checkpoint at {folder} has no {what}; it is half copied or of another kind: "
                "save the policy there again with save_pretrained, or train the run again"
            )


def checkpoint_digest(folder: Path) -> str:
    """sha256 (hex) over the names, sizes and contents of the folder's files.

    Of a file larger than 16 MiB only the first and last MiB are read: enough to tell two trained policies
    apart, and quick for large ones.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= _WHOLE:
                digest.update(file.read())
            else:
                digest.update(file.read(_END))
                file.seek(-_END, 2)
                digest.update(file.read())
    return digest.hexdigest()
