"""What the models of this package return through lm-eval: the text, and how its generation ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


class Response(str):
    """A generated text. lm-eval passes a string on as it is, and drops all else that a model knows.

    tokens: how many were generated, the end-of-sequence token included. truncated: the token limit cut it
    off.
    """

    tokens: int
    truncated: bool

    def __new__(cls, text: str, tokens: int, truncated: bool) -> Response:
        response = super().__new__(cls, text)
        response.tokens = tokens
        response.truncated = truncated
        return response

    def __getnewargs__(self) -> tuple[str, int, bool]:  # type: ignore[override]
        """What copying and unpickling call `__new__` with."""
        return str(self), self.tokens, self.truncated


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """The text before the first stop string."""
    for stop in until:
        text = text.split(stop)[0]
    return text


def batches_by_length(
    lengths: Sequence[int], batch_size: int, before_batch: Callable[[], None]
) -> Iterator[list[int]]:
    """Indices in batches, longest first and otherwise in order, so that a batch needs little padding.

    before_batch: called before each; what it raises ends the generation.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    for start in range(0, len(order), batch_size):
        before_batch()
        yield order[start : start + batch_size]
