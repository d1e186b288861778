"""Image files of source rows: taken out as bytes, and checked by decoding them whole."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from eval.datasets.records import DataError

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


def embedded_images(value: Any, place: str) -> tuple[bytes, ...]:
    """The files of a hub image column: one struct with `bytes`, or a list of them.

    Raises DataError naming `place` and the image for one that is missing or does not decode.
    """
    structs = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    files = []
    for number, struct in enumerate(structs):
        where = f"{place}, image {number}"
        content = struct.get("bytes") if isinstance(struct, Mapping) else None
        if not content:
            raise DataError(f"{where}: the file holds no image bytes; fetch the file again")
        files.append(checked_image(bytes(content), where))
    if not files:
        raise DataError(f"{place}: the row has no image; fetch the file again")
    return tuple(files)


def checked_image(content: bytes, place: str) -> bytes:
    """`content`, when it decodes as an image of at most 8 bits a channel. Raises DataError naming `place`."""
    from PIL import Image

    from eval.datasets.images import reason_of

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            image.load()
            mode = image.mode
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(
            f"{place}: the image does not decode: {reason_of(error)}; fetch the file again"
        ) from error
    if mode.startswith("I;16") or mode in ("I", "F"):
        raise DataError(
            f"{place}: the image has more than 8 bits a channel (mode {mode}), which not all engines read; "
            "save it with 8"
        )
    return content
