"""What figures look like, against images that were looked at when they were kept (`golden/figures`).

A figure that is to look otherwise: look at the new one, then keep it, with
`python -m pytest tests/analysis/test_looks.py --mpl-generate-path=tests/analysis/golden/figures`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image

from analysis.figures import FIGURES
from analysis.figures.spec import Drawing, render
from analysis.figures.style import PNG_DPI
from analysis.offline.correlation import Pairs, correlate, subsets
from analysis.offline.correlation_figure import correlation_figure
from analysis.offline.replay_figure import replay_figure
from analysis.statistics import Estimate, mean
from analysis.study import Study
from analysis.tracking.compare import ComparedGroup, Comparison, comparison_figure

DPI = 60
"""Enough to see what is where, and small enough to keep."""

TOLERANCE = 1.5
"""Root mean square of the difference, of 255. A name that has moved, or thinner lines, give 2 to 9."""

PINS = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").splitlines()

pytestmark = [
    pytest.mark.mpl_image_compare(baseline_dir="golden/figures", tolerance=TOLERANCE, style="default"),
    pytest.mark.skipif(
        f"matplotlib=={matplotlib.__version__}" not in PINS,
        reason="the images were drawn by the matplotlib of constraints.txt; others place letters otherwise",
    ),
]


@dataclass(frozen=True)
class Thumbnail:
    """A figure's PNG as the project writes it, which pytest-mpl saves at a lower resolution."""

    png: bytes

    def savefig(self, path: str, **_: Any) -> None:
        image = Image.open(io.BytesIO(self.png)).convert("RGB")
        width, height = (round(pixels * DPI / PNG_DPI) for pixels in image.size)
        image.resize((width, height), Image.Resampling.BOX).save(path, optimize=True)


@pytest.mark.parametrize("name", FIGURES)
def test_the_look_of(name: str, study_for: Callable[[str], Study]) -> Thumbnail:
    drawing = FIGURES[name].read(study_for(name))
    assert isinstance(drawing, Drawing)
    return Thumbnail(render(drawing, ("png",))["png"])


def test_the_look_of_a_comparison_of_tracked_runs() -> Thumbnail:
    accuracies = {
        ("grpo", "—"): (90.1, 91.2, 90.4),
        ("fastrl", "0.8"): (88.0, 89.5, 88.7),
        ("fastrl", "1.0"): (89.0, 88.5),
        ("cppo", "—"): (85.0,),
    }
    groups = tuple(ComparedGroup(tags, runs, mean(runs), 0, 1) for tags, runs in accuracies.items())
    comparison = Comparison("laptop", "laptop_geometry/t1/accuracy", ("method", "tau"), groups)
    return Thumbnail(comparison_figure(comparison, ("png",))["png"])


def test_the_look_of_a_correlation() -> Thumbnail:
    rng = np.random.default_rng(0)
    jaccard = rng.beta(3, 2, 600)
    cosine = np.clip(0.8 * jaccard + rng.normal(0, 0.15, 600), -0.2, 1)
    duplicate = rng.random(600) < 0.03
    correct = rng.choice([0.0, 1.0, np.nan], 600, p=[0.4, 0.5, 0.1])
    question = rng.integers(0, 60, 600)
    pairs = Pairs(
        question, np.where(duplicate, 1.0, jaccard), np.where(duplicate, 1.0, cosine), duplicate, correct
    )
    entries = []
    for name, some in subsets(pairs).items():
        found = correlate(some, resamples=100, seed=0)
        coefficients = {"pearson": _plain(found.pearson), "spearman": _plain(found.spearman)}
        entries.append({"subset": name, "pairs": len(some), **coefficients})
    return Thumbnail(correlation_figure({"correlations": entries}, pairs, ("png",))["png"])


def _plain(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else {"value": estimate.value, "n": estimate.n, "ci": estimate.ci}


def test_the_look_of_a_replay() -> Thumbnail:
    rows = (
        ("grpo", "GRPO", (8.0, 8.0, 8.0), 8.0),
        ("fastrl", "FastRL τ=0.6", (8.0, 7.0, 6.0), 3.6),
        ("fastrl", "FastRL τ=0.8", (8.0, 7.0, 6.0), 3.0),
        ("fastrl", "FastRL τ=1", (8.0, 7.0, 6.0), 2.6),
        ("cppo", "CPPO", (8.0, 8.0, 8.0), 4.0),
    )
    methods = []
    for method, label, sampled, kept in rows:
        shares = np.exp(-((np.arange(9) - kept) ** 2) / 2)
        counts = shares / shares.sum() if method == "fastrl" else np.eye(9)[int(kept)]
        stages = {"gen": 0.17 * np.mean(sampled), "old": 0.12 * kept, "ref": 0.12 * kept}
        stages |= {"update_actor": 0.6 * kept, "select": 0.0}
        step = float(sum(stages.values()))
        methods.append(
            {
                "method": method,
                "label": label,
                "epochs": [0, 1, 2],
                "n_by_epoch": list(sampled),
                "kept_by_epoch": [kept, 0.9 * kept, 0.8 * kept] if method == "fastrl" else [kept] * 3,
                "kept_shares": counts.tolist(),
                "stages": stages,
                "step": step,
                "speed": 8.08 / step,
            }
        )
    record = {"methods": methods, "costs": {"unit": "s"}}
    return Thumbnail(replay_figure(record, ("png",))["png"])
