"""A few held-out questions with their images, and the answers before and after training, method by method."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from analysis.examples import DECODING, Answer, Example, Examples, examples
from analysis.figures.spec import FigureSpec
from analysis.figures.style import INK, MUTED, PAGE_WIDTH
from analysis.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNT = 7
RIGHT, WRONG = "#009E73", "#D55E00"
_IMAGE_SHARE, _QUESTION_SHARE = 0.13, 0.27
_HEADER = 0.5
"""Of a row's height."""


def _draw(study: Study, figure: Figure) -> None:
    found = examples(study, COUNT)
    assert isinstance(found, Examples)
    axes = figure.add_subplot()
    axes.set_axis_off()
    left = _IMAGE_SHARE + _QUESTION_SHARE
    width = (1 - left) / len(found.columns)
    middles = [left + width * (column + 0.5) for column in range(len(found.columns))]
    for middle, name in zip(middles, found.columns, strict=True):
        axes.text(middle, -0.1, name.replace(" ", "\n"), ha="center", va="bottom", fontsize=7, color=INK)
    for number, row in enumerate(found.rows):
        axes.axhline(number, color="#d9d9d9", linewidth=0.5)
        _draw_image(axes, row, number)
        axes.text(_IMAGE_SHARE + 0.015, number + 0.38, row.question, va="center", fontsize=7, color=INK)
        axes.text(
            _IMAGE_SHARE + 0.015, number + 0.7, f"right: {row.gold}", va="center", fontsize=7, color=MUTED
        )
        for middle, answer in zip(middles, row.answers, strict=True):
            text, colour = _cell(answer)
            axes.text(middle, number + 0.5, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xlim(0, 1)  # after the images, which set their own
    axes.set_ylim(len(found.rows), -_HEADER)


def _draw_image(axes: Axes, row: Example, number: int) -> None:
    import matplotlib.image

    pixels = matplotlib.image.imread(io.BytesIO(row.image), format="png")
    extent = (0.0, _IMAGE_SHARE, number + 0.93, number + 0.07)
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto", extent=extent)


def _cell(answer: Answer | None) -> tuple[str, str]:
    if answer is None:
        return "\N{EN DASH}", MUTED
    mark = "\N{CHECK MARK}" if answer.correct else "\N{MULTIPLICATION SIGN}"
    return f"{answer.text if answer.text is not None else 'none'} {mark}", RIGHT if answer.correct else WRONG


def _lacks(study: Study) -> str:
    found = examples(study, COUNT)
    return found if isinstance(found, str) else ""


def _caption(study: Study) -> str:
    found = examples(study, COUNT)
    assert isinstance(found, Examples)
    return (
        f"Held-out questions of {study.benchmark_label(found.benchmark)}, one a family, with the answers "
        f"({DECODING} decoding) of the starting policy and of each method's policy, seed {found.seed}. Of a "
        "family the question is shown whose answers differ most, so these are no measure of accuracy."
    )


FIGURE = FigureSpec(
    name="examples",
    title="Some figures, and what the policies answer",
    paper_item="",
    size=(PAGE_WIDTH, 4.6),
    caption=_caption,
    lacks=_lacks,
    draw=_draw,
)
