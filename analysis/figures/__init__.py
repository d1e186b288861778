"""The figures of a report. Adding one: a file with a `FIGURE`, and a line here."""

from __future__ import annotations

from analysis.figures import examples, figure1, figure3, figure5, figure6, figure7, lag, profiles, stages
from analysis.figures.spec import FigureSpec

FIGURES: dict[str, FigureSpec] = {
    spec.name: spec
    for spec in (
        examples.FIGURE,
        figure1.FIGURE,
        figure3.FIGURE,
        figure5.FIGURE,
        figure6.FIGURE,
        figure7.FIGURE,
        lag.FIGURE,
        profiles.FIGURE,
        stages.FIGURE,
    )
}
