"""A table as a page of PDF in the figures' style, ruled as in a paper, and as large as the table is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from analysis.figures.spec import figure_bytes
from analysis.figures.style import INK, MUTED, PAGE_WIDTH
from analysis.render.text import header, header_groups, seeds_text, written
from analysis.table import Table, reported_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.ft2font import FT2Font

_POINTS = 72.0
"""Of an inch; all lengths below are in points."""
_TITLE, _BODY, _SMALL, _NOTE = 8.5, 7.5, 6.0, 6.5
"""Sizes of letters: the title, numbers and headers, intervals, notes."""
_LINE, _NOTE_LINE = 12.0, 8.5
_MARGIN, _GAP, _BESIDE = 3.0, 11.0, 2.5
"""Around the page, between columns, between a number and its interval."""
_HEAVY, _LIGHT = 0.9, 0.45
"""Widths of the rules around a table, and within it."""
_HEADER_LETTERS = 13
"""The most letters of a header's line, for each column below it."""

_SPACES = re.compile(r"[\t\n\v\f\r ]+")
"""All but no-break spaces, which keep an arrow with its header."""
_EMPTY = "No arm of this study feeds this table."

Put = Callable[..., None]


@dataclass(frozen=True)
class _Cell:
    """small: what follows the text in smaller letters."""

    text: str
    small: str = ""
    bold: bool = False


@dataclass(frozen=True)
class _Column:
    """header: its lines. words: whether cells begin at the left, as labels do. colour: of its cells."""

    header: tuple[str, ...]
    cells: tuple[_Cell, ...]
    words: bool = False
    colour: str = INK

    @property
    def text(self) -> float:
        """The width of the cells without what is small."""
        return max((_width(cell.text, _BODY, cell.bold) for cell in self.cells), default=0.0)

    @property
    def block(self) -> float:
        """The width of the cells."""
        small = [_BESIDE + _width(cell.small, _SMALL) for cell in self.cells if cell.small]
        return self.text + max(small, default=0.0)

    @property
    def width(self) -> float:
        return max(self.block, *(_width(line, _BODY) for line in self.header), 0.0)


def render_pdf(table: Table) -> bytes:
    """The table with its title above and its notes below; the same table gives the same bytes."""
    columns = _columns(table)
    widths = _widths(table, columns)
    lefts = [_MARGIN + sum(widths[:index]) + index * _GAP for index in range(len(widths))]
    right = lefts[-1] + widths[-1]
    width = _MARGIN + max(right, _MARGIN + _width(table.title, _TITLE, True), _POINTS * PAGE_WIDTH / 2)
    notes = [
        line for note in (*table.notes, *table.gaps) for line in _wrapped(_shown(note), width - 2 * _MARGIN)
    ]
    groups = _group_lines(table) if table.rows else []
    stacked = max((len(lines) for lines, _, _ in groups), default=0)
    heads = max(len(column.header) for column in columns)
    above = _MARGIN + 1.3 * _LINE
    first = above + (stacked + (0.3 if stacked else 0)) * _LINE
    body = first + (heads + 0.35) * _LINE
    end = body + (max(len(table.rows), 1) + 0.35) * _LINE
    height = end + 2 + len(notes) * _NOTE_LINE + _MARGIN

    def draw(figure: Figure) -> None:
        put, rule = _tools(figure, width, height)
        put(_MARGIN, _MARGIN + _TITLE, table.title, _TITLE, INK, bold=True)
        for y, weight in ((above, _HEAVY), (body, _LIGHT), (end, _HEAVY)):
            rule(_MARGIN, right, y, weight)
        for lines, start, stop in groups:
            left, ends = lefts[start], lefts[stop - 1] + widths[stop - 1]
            for at, line in enumerate(lines, start=1 + stacked - len(lines)):
                put((left + ends - _width(line, _BODY)) / 2, above + at * _LINE - 1, line, _BODY, INK)
            rule(left, ends, first, _LIGHT)
        for column, left, own in zip(columns, lefts, widths, strict=True):
            for at, line in enumerate(column.header, start=1 + heads - len(column.header)):
                x = left if column.words else left + (own - _width(line, _BODY)) / 2
                put(x, first + at * _LINE, line, _BODY, INK)
            _put_cells(put, column, left if column.words else left + (own - column.block) / 2, body)
        for number, note in enumerate(notes, start=1):
            put(_MARGIN, end + 2 + number * _NOTE_LINE, note, _NOTE, MUTED)

    return figure_bytes((width / _POINTS, height / _POINTS), draw, ("pdf",), laid_out=True)["pdf"]


def _put_cells(put: Put, column: _Column, left: float, top: float) -> None:
    for row, cell in enumerate(column.cells, start=1):
        y = top + row * _LINE
        x = left if column.words else left + column.text - _width(cell.text, _BODY, cell.bold)
        put(x, y, cell.text, _BODY, column.colour, bold=cell.bold)
        if cell.small:
            put(left + column.text + _BESIDE, y, cell.small, _SMALL, MUTED)


def _columns(table: Table) -> list[_Column]:
    labels = tuple(_Cell(_shown(row.label)) for row in table.rows)
    columns = [_Column((_shown(table.corner),), labels or (_Cell(_EMPTY),), words=True)]
    if table.seeds and table.rows:
        seeds = tuple(_Cell(seeds_text(table, index)) for index in range(len(table.rows)))
        columns.append(_Column(("Seeds",), seeds))
    reported = reported_columns(table)
    for index, spec in enumerate(table.columns if table.rows else ()):
        best, cells = table.best_rows(index), []
        for at, row in enumerate(table.rows):
            text = written(row.values[index], spec, row.n)
            small = " ".join(filter(None, (text.interval, text.n)))
            cells.append(_Cell(text.number, small, at in best))
        head = _stacked(_shown(header(spec)), _HEADER_LETTERS)
        columns.append(_Column(head, tuple(cells), colour=MUTED if index in reported else INK))
    return columns


def _group_lines(table: Table) -> list[tuple[tuple[str, ...], int, int]]:
    """Spanning headers: lines, first column, and the one after the last, counting labels and seeds."""
    found, first = [], 2 if table.seeds else 1
    for text, count in header_groups(table.columns):
        if text:
            found.append((_stacked(_shown(text), _HEADER_LETTERS * count), first, first + count))
        first += count
    return found


def _widths(table: Table, columns: Sequence[_Column]) -> list[float]:
    """Of the columns, widened where a spanning header needs it."""
    widths = [column.width for column in columns]
    for lines, start, stop in _group_lines(table) if table.rows else []:
        lacks = (
            max(_width(line, _BODY) for line in lines) - sum(widths[start:stop]) - _GAP * (stop - start - 1)
        )
        for index in range(start, stop):
            widths[index] += max(lacks, 0.0) / (stop - start)
    return widths


def _tools(figure: Figure, width: float, height: float) -> tuple[Put, Put]:
    """Functions that put words and rules onto the page, by points from its left and its top."""
    from matplotlib.lines import Line2D

    from analysis.render.page_words import PageWords, Word

    words = PageWords(height)
    figure.add_artist(words)

    def put(x: float, y: float, text: str, size: float, colour: str, bold: bool = False) -> None:
        words.put(Word(x, y, text, size, colour, bold))

    def rule(left: float, right: float, y: float, weight: float) -> None:
        line = Line2D([left / width, right / width], [1 - y / height] * 2, color=INK, linewidth=weight)
        figure.add_artist(line)

    return put, rule


def _stacked(text: str, letters: int) -> tuple[str, ...]:
    return tuple(textwrap.wrap(text, letters, break_long_words=False)) or ("",)


def _wrapped(text: str, width: float) -> list[str]:
    """A note in lines that are no wider."""
    lines, used, space = [""], 0.0, _width(" ", _NOTE)
    for word in text.split():
        own = _width(word, _NOTE)
        if lines[-1] and used + space + own > width:
            lines.append(word)
            used = own
        else:
            used += own + (space if lines[-1] else 0.0)
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _shown(text: str) -> str:
    """Words on one line, in which a character that the font has not is its code point in brackets."""
    known = _font(bold=False).get_char_index
    return "".join(each if known(ord(each)) else f"[U+{ord(each):04X}]" for each in _SPACES.sub(" ", text))


@cache
def _font(bold: bool) -> FT2Font:
    """A font of its own, since drawing changes the size of those that matplotlib keeps."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    from analysis.render.page_words import word_font

    font = FT2Font(findfont(word_font(_BODY, bold)))
    font.set_size(100, _POINTS)
    return font


@cache
def _width(text: str, size: float, bold: bool = False) -> float:
    """Points that a text takes in letters of a size."""
    font = _font(bold)
    font.set_text(text, 0.0)
    pixels: float = font.get_width_height()[0] / 64
    return pixels * size / 100
