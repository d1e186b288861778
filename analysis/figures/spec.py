"""What a figure is made of, and how it becomes bytes. Each figure's file holds one `FIGURE`."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.figures.style import PNG_DPI, paper_style
from analysis.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA = {
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}
"""Per file format, what would make the same figure differ from one drawing to the next."""


@dataclass(frozen=True)
class Drawing:
    """A figure whose numbers have been read. size: inches. draw: onto an empty figure of that size.

    caption: sentences on what is shown.
    """

    caption: str
    size: tuple[float, float]
    draw: Callable[[Figure], None]


@dataclass(frozen=True)
class FigureSpec:
    """One figure of a report, registered in `analysis.figures.FIGURES` under its name.

    paper_item: the paper's figure that it follows, "" for none. read: the drawing of a study's records, or
    which of them the study lacks, in words.
    """

    name: str
    title: str
    paper_item: str
    read: Callable[[Study], Drawing | str]


def render(drawing: Drawing, formats: tuple[str, ...]) -> dict[str, bytes]:
    """The figure as bytes by format (`png`, `pdf`, `svg`); the same records give the same bytes."""
    return figure_bytes(drawing.size, drawing.draw, formats)


def figure_bytes(
    size: tuple[float, float],
    draw: Callable[[Figure], None],
    formats: tuple[str, ...],
    laid_out: bool = False,
) -> dict[str, bytes]:
    """What `draw` puts onto an empty figure of this size (inches), in the paper's style, by format.

    laid_out: whether `draw` puts everything where it is to be, so that nothing need be moved apart.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    files = {}
    with paper_style():
        figure = Figure(figsize=size, layout=None if laid_out else "constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        if not laid_out:
            figure.draw_without_rendering()
            figure.set_layout_engine(None)  # laid out once: even "none" would draw each file twice
        for file_format in formats:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=file_format, dpi=PNG_DPI, metadata=_METADATA[file_format])
            files[file_format] = buffer.getvalue()
    return files
