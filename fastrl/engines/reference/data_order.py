"""The order in which training questions are visited: one seeded permutation per pass, pass after pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastrl.engines.reference.seeds import stream


@dataclass(frozen=True)
class DataPosition:
    """Where the run stands in the data: `used` questions of pass number `epoch` (from 0) have been drawn.

    `used` is below the number of questions: a pass that is drawn to its end has turned over to the next.
    """

    epoch: int
    used: int


def draw_questions(
    position: DataPosition, count: int, size: int, seed: int
) -> tuple[NDArray[np.int64], DataPosition]:
    """The next `count` of `size` questions as indices, and the position after them.

    Every pass visits every question once; a draw runs on into the next pass where one ends, so it may hold a
    question twice.
    """
    drawn: list[NDArray[np.int64]] = []
    epoch, used = position.epoch, position.used
    while count:
        part = _permutation(epoch, size, seed)[used : used + count]
        drawn.append(part)
        count -= len(part)
        used += len(part)
        if used == size:
            epoch, used = epoch + 1, 0
    return np.concatenate(drawn) if drawn else np.zeros(0, np.int64), DataPosition(epoch, used)


def _permutation(epoch: int, size: int, seed: int) -> NDArray[np.int64]:
    return stream(seed, "data order", epoch).permutation(size)
