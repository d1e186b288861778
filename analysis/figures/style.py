"""How figures look: one colour a method everywhere, column widths of common venues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.study import Arm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN_WIDTH, PAGE_WIDTH = 3.35, 6.9
"""Inches: one column of a two-column page, and the whole page."""

PNG_DPI = 220
INK, MUTED = "#1a1a1a", "#6b6b6b"

# Okabe and Ito's palette, safe for the common kinds of colour blindness, without its yellow (too light).
_BLACK, _ORANGE, _SKY, _GREEN, _BLUE, _VERMILION, _PURPLE = (
    "#1a1a1a", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
_COLOURS = {
    "grpo": _BLACK,
    "dr_grpo": "#7f7f7f",
    "dapo": _ORANGE,
    "gspo": _PURPLE,
    "cppo": _BLUE,
    "greso": _GREEN,
    "greso_ema": "#66C2A5",
    "fastrl": _VERMILION,
    "fastrl_dapo": _ORANGE,
    "fastrl_gspo": _PURPLE,
    "fastrl_without_mdap": "#A65628",
    "fastrl_without_ars": "#E78A6B",
    "advantage_only": "#8C6BB1",
    "cppo_2_kept": _BLUE,
}
_OTHER_COLOURS = (_SKY, "#999933", "#882255", "#44AA99", "#117733", "#AA4499")
MARKERS = {"main": "o", "ablation": "s", "pruning": "^", "tau": "D"}
"""Markers by group tag."""

_STYLE_FILE = Path(__file__).with_name("paper.mplstyle")


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw inside this: matplotlib's settings are the paper's, whatever the user's own are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        with matplotlib.rc_context(fname=_STYLE_FILE):
            yield


def colour(method: str) -> str:
    """A method's colour; one that has none of its own takes one by its name."""
    return _COLOURS.get(method) or _OTHER_COLOURS[sum(method.encode()) % len(_OTHER_COLOURS)]


def text_colour(method: str) -> str:
    """A method's colour for its name, darker, since thin letters need more contrast than a mark."""
    red, green, blue = (round(int(colour(method)[at : at + 2], 16) * 0.78) for at in (1, 3, 5))
    return f"#{red:02x}{green:02x}{blue:02x}"


def dashed(method: str) -> bool:
    """Whether a method's lines are dashed: FastRL on another method's objective has that method's colour."""
    return method.startswith("fastrl_")


def line_style(arm: Arm) -> dict[str, Any]:
    """Keyword arguments of an arm's line."""
    style: dict[str, Any] = {"color": colour(arm.method), "label": arm.label}
    if dashed(arm.method):
        style["linestyle"] = (0, (4, 1.5))
    return style


def marker_group(arm: Arm) -> str:
    """The group that decides an arm's marker: the first of its groups that has one."""
    return next((group for group in arm.groups if group in MARKERS), "main")


def panel_title(axes: Axes, letter: str, title: str) -> None:
    """A panel's title, led by its letter when the figure has several."""
    axes.set_title(f"({letter}) {title}" if letter else title, loc="left", color=INK)


def ticks_at(axes: Axes, values: Sequence[float]) -> None:
    """Ticks of x at these values and nowhere else, without needless zeros."""
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
