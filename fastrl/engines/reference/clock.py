"""Wall-clock and CPU seconds of a step's stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor", "validation", "save_checkpoint")
WORK = STAGES[:7]
"""The stages that make up a step's time; validation and checkpoints are the harness's."""


class StageClock:
    """Adds up what each stage of one step takes; a stage may be entered several times.

    CPU seconds are those of the whole process, all threads. On a GPU a stage ends when its kernels have.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._wall = dict.fromkeys(STAGES, 0.0)
        self._cpu = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._finish_kernels()
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self._finish_kernels()
            self._wall[name] += time.perf_counter() - wall
            self._cpu[name] += time.process_time() - cpu

    def record(self) -> dict[str, float]:
        """`timing_s/<stage>` and `cpu_s/<stage>` in seconds; `step` is the sum of the work stages."""
        flat: dict[str, float] = {}
        for prefix, seconds in (("timing_s", self._wall), ("cpu_s", self._cpu)):
            flat |= {f"{prefix}/{name}": value for name, value in seconds.items()}
            flat[f"{prefix}/step"] = sum(seconds[name] for name in WORK)
        return flat

    def _finish_kernels(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
