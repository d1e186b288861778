"""All words of a page as one artist: matplotlib would measure and lay out each text of its own once more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.font_manager import FontProperties


@dataclass(frozen=True)
class Word:
    """Words on one line. x, y: where its base line begins, in points from the page's left and top.
    size: of the letters, in points."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    bold: bool


class PageWords(Artist):
    """The words of a page of a height (in points), in the order in which they were put there."""

    def __init__(self, height: float) -> None:
        super().__init__()
        self._height = height
        self._words: list[Word] = []

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(self._words)

    def put(self, word: Word) -> None:
        self._words.append(word)

    def draw(self, renderer: RendererBase) -> None:
        points = float(np.asarray(renderer.points_to_pixels(1.0)))
        for word in self._words:
            context = renderer.new_gc()
            context.set_foreground(word.colour)
            x, y = word.x * points, (self._height - word.y) * points
            renderer.draw_text(context, x, y, word.text, word_font(word.size, word.bold), 0.0)
            context.restore()


@cache
def word_font(size: float, bold: bool) -> FontProperties:
    """The font that words are drawn, and to be measured, in."""
    return FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
