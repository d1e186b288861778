"""What all our lm-eval models share: they generate in batches, each of which can be kept on disk."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from eval.datasets.images import LazyImage
from eval.models.journal import Journal
from eval.models.response import Response

Batch = tuple[list[int], Callable[[], Sequence[Response]]]
"""Indices of requests, and what generates their responses, in that order."""


class BatchedModel:
    """The part of an lm-eval model whose `generate_until` goes through `batches`.

    A subclass sets `before_batch` (what it raises ends the generation) and must make batches whose
    composition and responses depend on the requests alone, not on which batches ran before.
    """

    before_batch: Callable[[], None]
    journal: Journal | None = None

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """The requests in batches; a batch is generated when it is called, if at all."""
        raise NotImplementedError

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = True) -> list[Response]:
        """One response per request, in order; batches that the journal holds are not generated again."""
        responses: dict[int, Response] = {}
        for indices, generate in self.batches(requests):
            done = None if self.journal is None else self.journal.finished(indices)
            if done is None:
                self.before_batch()
                start = time.perf_counter()
                done = list(generate())
                if self.journal is not None:
                    self.journal.append(indices, done, time.perf_counter() - start)
            responses.update(zip(indices, done, strict=True))
        return [responses[index] for index in range(len(requests))]


class GenerativeModel(BatchedModel, LM):  # type: ignore[misc]
    """A batched model that only generates."""

    def loglikelihood(self, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError(
            f"{type(self).__name__} only generates; use lm=hf for tasks that score given continuations"
        )

    def loglikelihood_rolling(self, requests: Sequence[Instance]) -> list[float]:
        raise NotImplementedError(
            f"{type(self).__name__} only generates; use lm=hf for tasks that score given texts"
        )


class UntemplatedModel(GenerativeModel):
    """A model that passes the user's text on as it is: a server has a template, a record needs none."""

    def apply_chat_template(
        self, chat_history: Sequence[Mapping[str, str]], add_generation_prompt: bool = True
    ) -> str:
        (message,) = chat_history
        return message["content"]

    def chat_template(self, chat_template: bool | str = False) -> str:
        return ""


def in_order(requests: Sequence[Instance], batch_size: int) -> Iterator[list[int]]:
    """Indices of the requests, `batch_size` at a time."""
    for start in range(0, len(requests), batch_size):
        yield list(range(start, min(start + batch_size, len(requests))))


def images_of(request: Instance) -> list[LazyImage]:
    """The images of a request, whose places `eval.lm_eval_run` hands over; [] for a text."""
    return [LazyImage(source) for source in request.args[2]["visual"]] if len(request.args) > 2 else []


def with_images(request: Instance) -> Instance:
    """The request as lm-eval's own models take it, images instead of their places."""
    if len(request.args) < 3:
        return request
    opened = copy.copy(request)
    opened.arguments = (*request.args[:2], {"visual": images_of(request)})
    return opened
