"""Tables as LaTeX: `\\input` one into a document that loads booktabs and graphicx."""

from __future__ import annotations

import textwrap

from analysis.render.text import header, header_groups, seeds_text, written
from analysis.table import Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    # Right after a line's end these would be read as arguments of the line break.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "—": "---",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "→": r"$\rightarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "Δ": r"$\Delta$",
    "§": r"\S{}",
    "°": r"$^\circ$",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
}
_BREAK = r"\\"
_HEADER_LETTERS = 13
"""The most letters of a header's line, for each column below it."""

_LAST_ACCENTED_LETTER = "\u017f"


def escape(text: str) -> str:
    """Text that prints as it is: special characters escaped, symbols as commands, one line.

    A character that pdfLaTeX can't print (an emoji, say) becomes its code point in brackets.
    """
    return "".join(map(_escaped, " ".join(text.split())))


def render_latex(table: Table) -> str:
    """A table environment with caption, label `tab:<name>`, booktabs rules, and notes below.

    Long headers are stacked; a table that is still wider than the line is scaled down to it.
    """
    seeds = ["Seeds"] if table.seeds else []
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape(table.title)}.}}",
        rf"\label{{tab:{table.name}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{4pt}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * (len(seeds) + len(table.columns))}}}",
        r"\toprule",
        *_group_lines(table, len(seeds)),
        _line(
            [
                escape(table.corner),
                *seeds,
                *(_stacked(header(column), _HEADER_LETTERS, "r") for column in table.columns),
            ]
        ),
        r"\midrule",
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    if table.notes or table.gaps:
        notes = " ".join(escape(note) for note in (*table.notes, *table.gaps))
        lines += [r"\par\vspace{3pt}", rf"\parbox{{\linewidth}}{{\scriptsize {notes}}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _body(table: Table) -> list[str]:
    best = [table.best_rows(column) for column in range(len(table.columns))]
    lines = []
    for index, row in enumerate(table.rows):
        cells = [escape(row.label), *([escape(seeds_text(table, index))] if table.seeds else [])]
        for column, value in enumerate(row.values):
            text = written(value, table.columns[column], row.n)
            number = rf"\textbf{{{escape(text.number)}}}" if index in best[column] else escape(text.number)
            small = " ".join(filter(None, (text.interval, text.n)))
            cells.append(rf"{number}{{\scriptsize\,{escape(small)}}}" if small else number)
        lines.append(_line(cells))
    return lines


def _group_lines(table: Table, offset: int) -> list[str]:
    """The line of spanning headers with a rule under each; nothing when no column has one."""
    groups = header_groups(table.columns)
    if not any(text for text, _ in groups):
        return []
    cells, rules, first = [""] * (1 + offset), [], 2 + offset
    for text, width in groups:
        stacked = _stacked(text, _HEADER_LETTERS * width, "c")
        cells.append(
            rf"\multicolumn{{{width}}}{{c}}{{{stacked}}}" if text else "&".join([" "] * width).strip()
        )
        if text:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    return [_line(cells), "".join(rules)]


def _stacked(text: str, letters: int, side: str) -> str:
    """A header in lines of so many letters at most, where it breaks at spaces."""
    lines = [escape(line) for line in textwrap.wrap(text, letters, break_long_words=False)]
    if len(lines) < 2:
        return "".join(lines)
    return rf"\shortstack[{side}]{{{_BREAK.join(lines)}}}"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable() and character <= _LAST_ACCENTED_LETTER:
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"
