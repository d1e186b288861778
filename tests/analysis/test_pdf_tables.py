"""Tables as pages of PDF: every word on the page, none over another, and the same bytes each time."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox
from test_tables import EXAMPLE, HOSTILE

import analysis.render.pdf
from analysis.figures.style import paper_style
from analysis.render.page_words import PageWords, Word
from analysis.render.pdf import render_pdf
from analysis.study import Study
from analysis.table import Table
from analysis.tables import TABLES

FINE = 10
"""Pixels a point: at fewer, letters are widened to whole pixels, which a PDF does not do."""
ROUNDING = 1.0
"""Points by which a letter's ink may pass the width that its font tells."""


def words(table: Table, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[Text, Bbox], float, float]:
    """What is written on a table's page, each with its box in points, and the size of the page."""
    found: list[tuple[dict[Text, Bbox], float, float]] = []

    def drawn(size: tuple[float, float], draw: Callable[[Figure], None], *_: object, **__: object) -> object:
        with paper_style():
            figure = Figure(figsize=size, dpi=72 * FINE)
            renderer = FigureCanvasAgg(figure).get_renderer()
            draw(figure)
            whole = Affine2D().scale(1 / FINE)
            (page,) = figure.findobj(PageWords)
            texts = [measurable(figure, word, size[1] * 72) for word in page.words if word.text]
            boxes = {each: each.get_window_extent(renderer).transformed(whole) for each in texts}
            found.append((boxes, size[0] * 72, size[1] * 72))
        return {"pdf": b""}

    monkeypatch.setattr(analysis.render.pdf, "figure_bytes", drawn)
    render_pdf(table)
    return found[0]


def measurable(figure: Figure, word: Word, height: float) -> Text:
    """A word of a page in pixels, as matplotlib itself would set it."""
    return Text(
        word.x * FINE,
        (height - word.y) * FINE,
        word.text,
        fontsize=word.size,
        fontweight="bold" if word.bold else "normal",
        parse_math=False,
        figure=figure,
    )


@pytest.mark.parametrize("name", TABLES)
def test_no_word_of_a_table_lies_over_another_or_off_the_page(
    name: str, study_for: Callable[[str], Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes, width, height = words(TABLES[name].build(study_for(name)), monkeypatch)
    assert len(boxes) > 10
    for box in boxes.values():
        assert box.x0 >= -ROUNDING and box.x1 <= width + ROUNDING
        assert box.y0 >= -ROUNDING and box.y1 <= height + ROUNDING
    for (one, first), (other, second) in itertools.combinations(boxes.items(), 2):
        apart = first.x1 <= second.x0 + ROUNDING or second.x1 <= first.x0 + ROUNDING
        above = first.y1 <= second.y0 + 2 * ROUNDING or second.y1 <= first.y0 + 2 * ROUNDING
        assert apart or above, (one.get_text(), other.get_text())


def test_a_table_says_all_that_it_holds_and_the_best_in_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes, _, _ = words(EXAMPLE, monkeypatch)
    written = {text.get_text(): text for text in boxes}
    for each in (
        "Every kind of value & 100 % of the marks",
        "GRPO",
        "Seeds",
        "−1.9",
        "± 1.1",
        "[2.00, 2.29]",
    ):
        assert each in written
    bold = {text.get_text() for text in boxes if text.get_fontweight() == "bold"}
    assert bold == {EXAMPLE.title, "91.2", "14.00", "2.14×"}
    notes = " ".join(text.get_text() for text in boxes)
    assert all(word in notes for note in (*EXAMPLE.notes, *EXAMPLE.gaps) for word in note.split())


def test_a_hostile_name_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a letter that the font has not
        assert render_pdf(EXAMPLE).startswith(b"%PDF")
    row = replace(EXAMPLE.rows[1], label=f"{HOSTILE} \u4e2d")
    boxes, _, _ = words(replace(EXAMPLE, rows=(row,)), monkeypatch)
    expected = f"{HOSTILE} [U+4E2D]".replace("\n", " ")
    assert expected in {text.get_text() for text in boxes}


def test_a_table_without_rows_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes, _, _ = words(replace(EXAMPLE, rows=(), notes=(), gaps=()), monkeypatch)
    assert "No arm of this study feeds this table." in {text.get_text() for text in boxes}


def test_another_process_gives_the_same_bytes() -> None:
    code = (
        "import sys; from test_tables import EXAMPLE; from analysis.render.pdf import render_pdf; "
        "sys.stdout.buffer.write(render_pdf(EXAMPLE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(Path(__file__).parent)]!r}; {code}"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert render_pdf(EXAMPLE) == done.stdout == render_pdf(EXAMPLE)
