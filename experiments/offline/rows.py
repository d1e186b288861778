"""Rows of recorded trajectories, a batch at a time, put together into steps and groups.

Only one step and one batch are in memory, whatever the size of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from experiments.errors import UserError
from fastrl.rollouts import FloatArray, Rollouts


@dataclass(frozen=True)
class Rows:
    """M trajectories in the order of their file.

    step: (M,) int64. group: M keys, equal for the trajectories of a group within a step. question: M ids.
    tokens: flat int32; lengths: (M,) int64. reward, accuracy: (M,) float64; accuracy is NaN where it is not
    recorded. where: file and first row, for errors.
    """

    step: NDArray[np.int64]
    group: NDArray[np.object_]
    question: NDArray[np.object_]
    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]
    reward: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    where: str

    def part(self, start: int, stop: int) -> Rows:
        edges = np.concatenate([[0], np.cumsum(self.lengths)])
        return Rows(
            self.step[start:stop],
            self.group[start:stop],
            self.question[start:stop],
            self.tokens[edges[start] : edges[stop]],
            self.lengths[start:stop],
            self.reward[start:stop],
            self.accuracy[start:stop],
            self.where,
        )


def steps_of(batches: Iterable[Rows]) -> Iterator[tuple[int, Rollouts, FloatArray]]:
    """Each step's number, its trajectories, grouped, and accuracy; groups in the order of their first row.

    Raises UserError when a step's rows are not together.
    """
    pending: list[Rows] = []
    current: int | None = None
    for rows in batches:
        cuts = [0, *(np.flatnonzero(np.diff(rows.step)) + 1).tolist(), len(rows.step)]
        for start, stop in pairwise(cuts):
            if start == stop:
                continue
            step = int(rows.step[start])
            if current is not None and step != current:
                if step < current:
                    raise UserError(
                        f"Step {step} follows step {current}.",
                        rows.where,
                        "sort the rows by step, oldest first",
                    )
                yield current, *_grouped(pending)
                pending = []
            current = step
            pending.append(rows.part(start, stop))
    if current is not None:
        yield current, *_grouped(pending)


def _grouped(parts: Sequence[Rows]) -> tuple[Rollouts, FloatArray]:
    keys = np.concatenate([rows.group for rows in parts])
    numbers: dict[object, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys.tolist()], dtype=np.int64)
    lengths = np.concatenate([rows.lengths for rows in parts])
    tokens = np.concatenate([rows.tokens for rows in parts])
    order = np.argsort(group, kind="stable")
    if (order[1:] < order[:-1]).any():  # trajectories of a group are apart
        starts = np.cumsum(lengths) - lengths
        within = np.arange(len(tokens)) - np.repeat(
            np.cumsum(lengths[order]) - lengths[order], lengths[order]
        )
        tokens = tokens[np.repeat(starts[order], lengths[order]) + within]
    sizes = np.bincount(group, minlength=len(numbers))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    question = np.concatenate([rows.question for rows in parts])[order]
    rollouts = Rollouts(
        question_ids=tuple(str(name) for name in question[offsets[:-1]]),
        offsets=offsets,
        tokens=tokens,
        token_offsets=np.concatenate([[0], np.cumsum(lengths[order])]),
        rewards=np.concatenate([rows.reward for rows in parts])[order],
    )
    return rollouts, np.concatenate([rows.accuracy for rows in parts])[order]
