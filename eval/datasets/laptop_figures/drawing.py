"""From a figure to pixels: own glyphs and whole-number coordinates, so the same everywhere, without fonts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PIL import Image, ImageDraw

from eval.datasets.laptop_figures.figure import ADVANCE, HEIGHT, SCALE, WIDTH, Figure, Label
from eval.datasets.laptop_figures.png import grey_png

GLYPHS = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "11110 00001 00001 01110 00001 00001 11110",
    "4": "10001 10001 10001 11111 00001 00001 00001",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "01110 10000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 00100 00100 00100",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00001 01110",
    "+": "00000 00100 00100 11111 00100 00100 00000",
}
"""Rows of 5 dots, from the top."""


@dataclass(frozen=True)
class Style:
    """Grey levels, 0 to 255, and how many pixels wide a line is."""

    background: int
    line: int
    label: int
    line_width: int


INK = Style(background=255, line=100, label=0, line_width=2)
"""Dark on white."""

PENCIL = Style(background=205, line=120, label=40, line_width=1)
"""Thin on grey: the style of figures that reinforcement learning never sees."""


def draw(figure: Figure, style: Style) -> Image.Image:
    """The figure as a grey picture of WIDTH x HEIGHT."""
    picture = Image.new("L", (WIDTH, HEIGHT), style.background)
    pen = ImageDraw.Draw(picture)
    # Lines of one pixel between whole numbers are drawn alike everywhere; a wider one is several of them.
    steps = range(style.line_width)
    for stroke in figure.strokes:
        for dx in steps:
            for dy in steps:
                pen.line([(x + dx, y + dy) for x, y in stroke], fill=style.line)
    for label in figure.labels:
        _write(picture, label, style.label)
    return picture


def png(figure: Figure, style: Style) -> bytes:
    """The figure as a PNG file."""
    return grey_png(WIDTH, HEIGHT, draw(figure, style).tobytes())


def _write(picture: Image.Image, label: Label, level: int) -> None:
    x, y = label.at
    for glyph in label.text:
        picture.paste(level, (x, y), _stencil(glyph))
        x += ADVANCE


@cache
def _stencil(glyph: str) -> Image.Image:
    dots = GLYPHS[glyph].split()
    small = Image.new("1", (len(dots[0]), len(dots)))
    small.putdata([dot == "1" for row in dots for dot in row])
    return small.resize((small.width * SCALE, small.height * SCALE), Image.Resampling.NEAREST)
