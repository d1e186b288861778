"""Items of a JSON array in a file of any size, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.datasets.records import DataError

_CHARACTERS = 2**20
_BETWEEN = " \t\r\n,"


def array_items(path: Path) -> Iterator[Any]:
    """The items of a top-level JSON array, in order; memory holds the text of a few of them.

    Raises DataError naming the file and the item for anything that is no such array.
    """
    decoder, number = json.JSONDecoder(), 0
    try:
        with path.open(encoding="utf-8") as file:
            text, start, asked = file.read(_CHARACTERS).lstrip(), 1, _CHARACTERS
            if not text.startswith("["):
                raise DataError(f"{path} holds no JSON array; fetch it again")
            while True:
                while start < len(text) and text[start] in _BETWEEN:
                    start += 1
                if text.startswith("]", start):
                    return
                try:
                    item, end = decoder.raw_decode(text, start)
                    whole = end < len(text)  # a number at the end of what is read may go on
                except ValueError:
                    whole = False
                if whole:
                    yield item
                    start, number, asked = end, number + 1, _CHARACTERS
                    continue
                more = file.read(asked)
                if not more:
                    raise DataError(
                        f"{path}, item {number}: the file ends, or is no JSON, here; fetch it again"
                    )
                # Twice as much at each try: a long item is parsed a few times, not once a chunk.
                text, start, asked = text[start:] + more, 0, 2 * asked
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}, item {number}: cannot be read: {error}; fetch it again") from error
