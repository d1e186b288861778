"""Images of any mode are shown as a person sees them, or refused by name: never as other pixels."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eval.datasets.images import LazyImage
from eval.datasets.laptop_figures.png import grey_png
from eval.datasets.records import DataError

RAMP = np.linspace(0, 255, 64, dtype=np.uint8)[None].repeat(8, 0)
GREY = Image.fromarray(RAMP)
OPAQUE = Image.new("L", GREY.size, 255)


def shown(path: Path) -> np.ndarray:
    image = LazyImage(str(path))
    assert image.size == GREY.size
    return np.asarray(image.convert("RGB"), dtype=np.int64)[..., 0]


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("grey.png", GREY),
        ("colour.jpg", GREY.convert("RGB")),
        ("print.jpg", GREY.convert("CMYK")),
        ("palette.png", GREY.convert("P")),
        ("opaque.png", Image.merge("RGBA", [GREY, GREY, GREY, OPAQUE])),
        ("grey_opaque.png", Image.merge("LA", [GREY, OPAQUE])),
        ("grey_of_16_bits.png", Image.fromarray(RAMP.astype(np.uint16) * 257)),
    ],
)
def test_every_mode_shows_the_same_picture(name: str, image: Image.Image, tmp_path: Path) -> None:
    image.save(tmp_path / name, **({"quality": 100} if name.endswith("jpg") else {}))
    assert np.abs(shown(tmp_path / name) - RAMP).max() <= 3


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_pixels_of_an_unknown_range_are_refused(kind: type, tmp_path: Path) -> None:
    Image.fromarray(RAMP.astype(kind)).save(tmp_path / "scan.tiff")
    with pytest.raises(DataError, match=r"scan\.tiff has pixels of 32 bits .*; save it with 8 bits"):
        shown(tmp_path / "scan.tiff")


def test_an_image_too_large_to_open_is_named(tmp_path: Path) -> None:
    content = grey_png(1, 1, b"\0")
    header = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    content = content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]
    (tmp_path / "poster.png").write_bytes(content)
    with pytest.raises(DataError, match=r"poster\.png cannot be read: .*3600000000 pixels.*; scale it down"):
        shown(tmp_path / "poster.png")


def test_an_image_of_one_pixel_is_an_image(tmp_path: Path) -> None:
    Image.new("RGB", (1, 1), (9, 8, 7)).save(tmp_path / "dot.png")
    image = LazyImage(str(tmp_path / "dot.png"))
    assert image.size == (1, 1) and image.getpixel((0, 0)) == (9, 8, 7)
