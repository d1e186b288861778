"""Between EasyR1's trainer and its reward manager: each draw that was scored, and how long it took."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray
import torch

if TYPE_CHECKING:
    from verl.protocol import DataProto

ACCURACY, FORMAT = "response_accuracy", "response_format"
"""Columns that the tap adds to a batch: (N,) float32, as the reward function returns them."""


@dataclass(frozen=True)
class ScoredDraw:
    """A draw's trajectories before any filter, with token-level scores (N, L)."""

    batch: DataProto
    scores: torch.Tensor


class RewardTap:
    """Has the interface of EasyR1's remote reward manager, whose answers it passes on unchanged.

    It waits for each answer, so that the time that rewards take is measured by itself, and not as part of
    whatever stage happens to wait.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self.draws: list[ScoredDraw] = []
        self.seconds = 0.0

    def start(self) -> None:
        """Forget the step before."""
        self.draws, self.seconds = [], 0.0

    @property
    def compute_reward(self) -> RewardTap:
        return self

    def remote(self, batch: DataProto) -> Any:
        """Score a batch; returns what `ray.get` turns into (scores, metrics).

        Raises ValueError when the reward function gives no accuracy for each response.
        """
        start = time.perf_counter()
        scores, metrics = ray.get(self._manager.compute_reward.remote(batch))
        self.seconds += time.perf_counter() - start
        for key, column in (("accuracy", ACCURACY), ("format", FORMAT)):
            if len(metrics.get(key, ())) != len(batch):
                raise ValueError(
                    f"the reward function returned {len(metrics.get(key, ()))} values of {key!r} for "
                    f"{len(batch)} responses; each of its scores needs the keys overall, format and accuracy"
                )
            batch.batch[column] = torch.tensor(metrics[key], dtype=torch.float32)
        self.draws.append(ScoredDraw(batch, scores))
        return ray.put((scores, dict(metrics)))
