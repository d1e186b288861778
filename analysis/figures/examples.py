"""A few held-out questions with their images, and the answers before and after training, method by method."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.examples import DECODING, Answer, Examples, examples
from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.style import INK, MUTED, PAGE_WIDTH
from analysis.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNT = 7
RIGHT, WRONG = "#009E73", "#D55E00"
_IMAGE_SHARE, _QUESTION_SHARE = 0.13, 0.27
_ROW, _HEADER = 0.62, 0.32
"""Inches: a row's height, and that of the names above."""

_PAD = 0.07
"""Of a row's height, above and below an image."""

_QUESTION_LETTERS, _QUESTION_LINES = 36, 3
_LETTER = 0.065
"""Inches of a letter of an answer."""


def _read(study: Study) -> Drawing | str:
    found = examples(study, COUNT)
    if isinstance(found, str):
        return found
    try:
        images = [_pixels(row.image) for row in found.rows]
    except (OSError, ValueError, SyntaxError) as error:  # what Pillow raises for damaged files
        return f"an image of {found.benchmark} can't be read ({type(error).__name__})"
    caption = (
        f"Held-out questions of {study.benchmark_label(found.benchmark)}, one a family, with the answer "
        f"({DECODING} decoding) of the starting policy and of each method's policy, seed {found.seed}; below "
        "it, how many samples at T = 1 were right. Of a family the middle question by that number before "
        "training is shown."
    )
    caption += "".join(f" Left out: {reason}." for reason in found.damaged)
    size = (PAGE_WIDTH, _HEADER + _ROW * len(found.rows))
    return Drawing(caption, size, partial(_draw, found, images))


def _pixels(image: bytes) -> NDArray[np.uint8] | None:
    """(height, width, 3) colours of a file in any common format, None for a question without one."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(image)).convert("RGB")) if image else None


def _draw(found: Examples, images: Sequence[NDArray[np.uint8] | None], figure: Figure) -> None:
    axes = figure.add_subplot()
    axes.set_axis_off()
    left = _IMAGE_SHARE + _QUESTION_SHARE
    width = (1 - left) / len(found.columns)
    middles = [left + width * (column + 0.5) for column in range(len(found.columns))]
    for middle, name in zip(middles, found.columns, strict=True):
        axes.text(middle, -0.08, fill(name, 10), ha="center", va="bottom", fontsize=7, color=INK)
    for number, (row, pixels) in enumerate(zip(found.rows, images, strict=True)):
        axes.axhline(number, color="#d9d9d9", linewidth=0.5)
        if pixels is not None:
            _draw_image(axes, pixels, number)
        question = fill(row.question, _QUESTION_LETTERS, max_lines=_QUESTION_LINES, placeholder=" …")
        text = f"{question}\nright: {shorten(row.gold, _QUESTION_LETTERS)}"
        axes.text(
            _IMAGE_SHARE + 0.015, number + 0.5, text, va="center", fontsize=7, color=INK, linespacing=1.35
        )
        for middle, answer in zip(middles, row.answers, strict=True):
            text, colour = _cell(answer, int(width * PAGE_WIDTH / _LETTER))
            sampled = f"{answer.right} of {answer.samples}" if answer and answer.samples else ""
            height = number + (0.38 if sampled else 0.5)
            axes.text(middle, height, text, ha="center", va="center", fontsize=8, color=colour)
            axes.text(middle, number + 0.68, sampled, ha="center", va="center", fontsize=6.5, color=MUTED)
    axes.set_xlim(0, 1)  # after the images, which set their own
    axes.set_ylim(len(found.rows), -_HEADER / _ROW)


def _draw_image(axes: Axes, pixels: NDArray[np.uint8], number: int) -> None:
    """An image in its row, as large as fits without distorting it."""
    room = _IMAGE_SHARE * PAGE_WIDTH, (1 - 2 * _PAD) * _ROW
    inches = min(room[0] / pixels.shape[1], room[1] / pixels.shape[0])
    width, height = pixels.shape[1] * inches / PAGE_WIDTH, pixels.shape[0] * inches / _ROW
    x, y = (_IMAGE_SHARE - width) / 2, number + (1 - height) / 2
    # "none": a vector format holds the pixels themselves, not what they look like at some resolution
    axes.imshow(pixels, interpolation="none", aspect="auto", extent=(x, x + width, y + height, y))


def _cell(answer: Answer | None, letters: int) -> tuple[str, str]:
    if answer is None:
        return "\N{EN DASH}", MUTED
    mark = "\N{CHECK MARK}" if answer.correct else "\N{MULTIPLICATION SIGN}"
    text = "none" if answer.text is None else shorten(answer.text, max(letters - 2, 3))
    return f"{text} {mark}", RIGHT if answer.correct else WRONG


def shorten(text: str, letters: int) -> str:
    """A text on one line, cut to a number of letters."""
    line = " ".join(text.split())
    return line if len(line) <= letters else f"{line[: letters - 1]}…"


FIGURE = FigureSpec(
    name="examples", title="Some figures, and what the policies answer", paper_item="", read=_read
)
