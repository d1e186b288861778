"""PNG files whose bytes depend on the pixels alone: nothing in them is compressed.

What a zlib makes of the same pixels differs between its versions and builds; a parquet file compresses them
anyhow.
"""

from __future__ import annotations

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BLOCK = 65_535


def grey_png(width: int, height: int, pixels: bytes) -> bytes:
    """A file of 8-bit grey pixels, row by row. Raises ValueError unless there are width * height of them."""
    if len(pixels) != width * height:
        raise ValueError(f"{len(pixels)} pixels do not make a picture of {width} x {height}")
    rows = b"".join(b"\0" + pixels[start : start + width] for start in range(0, len(pixels), width))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", _stored(rows)) + _chunk(b"IEND", b"")


def _stored(content: bytes) -> bytes:
    """A zlib stream of uncompressed blocks."""
    parts = [content[start : start + _BLOCK] for start in range(0, len(content), _BLOCK)]
    blocks = b"".join(
        struct.pack("<BHH", number == len(parts), len(part), len(part) ^ 0xFFFF) + part
        for number, part in enumerate(parts, start=1)
    )
    return b"\x78\x01" + blocks + struct.pack(">I", zlib.adler32(content))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
