"""Random streams that depend on nothing but run seed, step and purpose.

A resumed run therefore draws what an uninterrupted one draws, without any generator state in its checkpoints,
and one part's use of randomness never shifts another's.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch


def stream(seed: int, purpose: str, step: int, draw: int = 0) -> np.random.Generator:
    """numpy generator of one purpose at one step; `draw` tells several of the same purpose apart."""
    return np.random.default_rng([zlib.crc32(purpose.encode()), seed, step, draw])


def torch_stream(seed: int, purpose: str, step: int, draw: int = 0) -> torch.Generator:
    """The same for torch, on the CPU."""
    start = int(stream(seed, purpose, step, draw).integers(2**63))
    return torch.Generator().manual_seed(start)
