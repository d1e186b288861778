"""Questions for EasyR1's trainer: its own loader, with a prompt filter in front and state that resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Row = dict[str, Any]

QUESTION_ID = "question_id"
"""The data column of stable ids; EasyR1's `uid`, new at every visit, names groups instead."""


class QuestionIterator:
    """Batches without end; `peek` fetches the next one and leaves it in place."""

    def __init__(self, batches: Iterator[Row]) -> None:
        self._batches = batches
        self._next: Row | None = None

    def peek(self) -> Row:
        if self._next is None:
            self._next = next(self._batches)
        return self._next

    def __iter__(self) -> QuestionIterator:
        return self

    def __next__(self) -> Row:
        batch, self._next = self.peek(), None
        return batch


class QuestionLoader:
    """Wraps EasyR1's training loader: leaves out questions that a filter skips, refilling from what follows.

    loader: a `StatefulDataLoader` over `RLHFDataset`. batch_size: questions a batch. plan(ids, epoch, visit):
    True where a question is taken; `visit` counts its calls, for seeding. on_epoch: called with the number of
    passes over the data that have ended.

    `extra` is the trainer's own state, saved with the loader's, which EasyR1 writes into each checkpoint. A
    loader resumed in a later epoch goes on in that epoch's order; EasyR1's own starts again in the first's.
    """

    def __init__(self, loader: Any, batch_size: int) -> None:
        self._loader = loader
        self._batch_size = batch_size
        self._buffer: list[Row] = []
        self._visits = 0
        self._order: torch.Tensor | None = None
        self._order_to_restore: torch.Tensor | None = None
        self.epoch = 0
        self.skipped = 0
        self.extra: dict[str, Any] = {}
        self.plan: Callable[[Sequence[str], int, int], NDArray[np.bool_]] | None = None
        self.on_epoch: Callable[[int], None] = lambda _: None
        dataset = loader.dataset.dataset
        if QUESTION_ID not in dataset.column_names:
            raise ValueError(
                f"the training data have no {QUESTION_ID}, but {', '.join(dataset.column_names)}; "
                "prepare them with `fastrl data prepare`, which writes stable ids"
            )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> QuestionIterator:
        return QuestionIterator(self._batches())

    def _batches(self) -> Iterator[Row]:
        while True:
            self._enter_epoch()
            for batch in self._loader:
                self._buffer += self._taken(_rows(batch))
                while len(self._buffer) >= self._batch_size:
                    taken, self._buffer = (
                        self._buffer[: self._batch_size],
                        self._buffer[self._batch_size :],
                    )
                    yield _collated(taken)
            self.epoch += 1
            self.on_epoch(self.epoch)

    def state_dict(self) -> dict[str, Any]:
        return {
            "loader": self._loader.state_dict(),
            "buffer": self._buffer,
            "visits": self._visits,
            "order": self._order,
            "epoch": self.epoch,
            "skipped": self.skipped,
            "extra": self.extra,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._loader.load_state_dict(state["loader"])
        self._buffer, self._visits = state["buffer"], state["visits"]
        self._order_to_restore = state["order"]
        self.epoch, self.skipped, self.extra = state["epoch"], state["skipped"], state["extra"]

    def _enter_epoch(self) -> None:
        """Keep the state that the sampler's generator has before it shuffles the epoch's questions."""
        generator = getattr(self._loader.sampler, "generator", None)
        if generator is None:
            return
        if self._order_to_restore is not None:
            generator.set_state(self._order_to_restore)
            self._order_to_restore = None
        self._order = generator.get_state()

    def _taken(self, rows: Sequence[Row]) -> list[Row]:
        if self.plan is None:
            return list(rows)
        wanted = self.plan([str(row[QUESTION_ID]) for row in rows], self.epoch, self._visits)
        self._visits += 1
        self.skipped += int((~wanted).sum())
        return [row for row, take in zip(rows, wanted, strict=True) if take]


def _rows(batch: Mapping[str, Any]) -> list[Row]:
    return [{key: values[index] for key, values in batch.items()} for index in range(len(batch[QUESTION_ID]))]


def _collated(rows: Sequence[Row]) -> Row:
    """What EasyR1's `collate_fn` returns: tensors stacked, everything else in arrays of objects."""
    batch: Row = {}
    for key, first in rows[0].items():
        values = [row[key] for row in rows]
        if isinstance(first, torch.Tensor):
            batch[key] = torch.stack(values)
        else:
            batch[key] = np.empty(len(values), dtype=object)
            batch[key][:] = values
    return batch
