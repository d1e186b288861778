"""Figure 5: whether trajectories alike in their tokens are alike in their policy gradients.

`fastrl correlate RUN --output <root>/studies/<study>/correlate` computes it; this draws what that found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.figures.spec import Drawing, FigureSpec
from analysis.figures.style import INK, MUTED, PAGE_WIDTH
from analysis.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCHEMA = 1
_COEFFICIENTS = {"pearson": (INK, "o", -0.13), "spearman": ("#009E73", "D", 0.13)}


def record_path(study: Study) -> Path:
    """Where the study's correlation lies."""
    return study.root / "studies" / study.plan.study / "correlate" / "correlate.json"


def _record(study: Study) -> Mapping[str, Any]:
    """The correlation; empty when there is none that this version reads."""
    try:
        record = json.loads(record_path(study).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and record.get("schema") == _SCHEMA else {}


def _read(study: Study) -> Drawing | str:
    record = _record(study)
    if not any(entry.get(name) for entry in record.get("correlations", ()) for name in _COEFFICIENTS):
        return (
            "no studies/<study>/correlate/correlate.json, which fastrl correlate RUN --output FOLDER writes"
        )
    caption = (
        f"Pairs of equal advantage among {record['trajectories']} trajectories of {record['groups']} groups "
        "(number of pairs in parentheses); 95 % intervals by a bootstrap over questions."
    )
    height = 1.0 + 0.34 * len(record["correlations"])
    return Drawing(caption, (PAGE_WIDTH, height), partial(_draw, record["correlations"]))


def _draw(entries: Sequence[Mapping[str, Any]], figure: Figure) -> None:
    axes = figure.add_subplot()
    lowest = 0.0
    for row, entry in enumerate(entries):
        for name, (own, marker, shift) in _COEFFICIENTS.items():
            found = entry.get(name)
            if found is None:
                continue
            if found["ci"]:
                axes.plot(found["ci"], [row + shift] * 2, color=own, linewidth=1.2)
            lowest = min(lowest, *(found["ci"] or ()), found["value"])
            label = (
                name.capitalize() if name not in axes.get_legend_handles_labels()[1] and row == 0 else None
            )
            axes.plot(found["value"], row + shift, marker, color=own, markersize=4, label=label)
    axes.axvline(0, color=MUTED, linewidth=0.7, zorder=1)
    axes.set_yticks(range(len(entries)), [f"{entry['subset']} ({entry['pairs']})" for entry in entries])
    axes.set_ylim(len(entries) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(lowest - 0.05, 1.02)
    axes.set_xlabel("Correlation of token Jaccard similarity and gradient cosine")
    figure.legend(loc="outside upper right", ncols=2, handlelength=1.0)


FIGURE = FigureSpec(
    name="figure5", title="Token similarity against gradient similarity", paper_item="Figure 5", read=_read
)
