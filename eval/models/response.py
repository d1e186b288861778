"""What the models of this package return through lm-eval: the text, and how its generation ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Response(str):
    """A generated text. lm-eval passes a string on as it is, and drops all else that a model knows.

    tokens: how many were generated, the end-of-sequence token included. truncated: the token limit cut it
    off. Both are None where the model does not say.
    """

    tokens: int | None
    truncated: bool | None

    def __new__(cls, text: str, tokens: int | None, truncated: bool | None) -> Response:
        response = super().__new__(cls, text)
        response.tokens = tokens
        response.truncated = truncated
        return response

    def __getnewargs__(self) -> tuple[str, int | None, bool | None]:  # type: ignore[override]
        """What copying and unpickling call `__new__` with."""
        return str(self), self.tokens, self.truncated


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """The text before the first stop string."""
    for stop in until:
        text = text.split(stop)[0]
    return text


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices in batches, longest first and otherwise in order, so that a batch needs little padding."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
