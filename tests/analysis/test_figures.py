"""Figures: drawn from records, the same bytes each time, legible, one colour a method everywhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_study import FASTRL, FULL_ARMS, GRPO, MAIN_ARMS, TAU_ARMS, write_study

from analysis.figures import FIGURES
from analysis.figures.curves import track
from analysis.figures.figure1 import points
from analysis.figures.lag import panels
from analysis.figures.spec import Drawing, render
from analysis.figures.spread import spread
from analysis.figures.style import PNG_DPI, colour, paper_style, text_colour
from analysis.lag_arms import lag_arms
from analysis.statistics import mean
from analysis.study import Study, load_study
from analysis.values import measured
from experiments.plan import read_plan, write_plan

DRAW = """
import sys, hashlib
from pathlib import Path
from analysis.figures import FIGURES
from analysis.figures.spec import render
from analysis.study import load_study
studies = {}
for name, root, study in zip(*[iter(sys.argv[1:])] * 3):
    loaded = studies.get(study) or studies.setdefault(study, load_study(Path(root), study))
    for data in render(FIGURES[name].read(loaded), ("png", "pdf", "svg")).values():
        print(hashlib.sha256(data).hexdigest())
"""


def drawing(name: str, study: Study) -> Drawing:
    found = FIGURES[name].read(study)
    assert isinstance(found, Drawing), found
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_in_every_format(name: str, study_for: Callable[[str], Study]) -> None:
    found = drawing(name, study_for(name))
    assert found.caption.endswith(".")
    files = render(found, ("png", "pdf", "svg"))
    assert files["png"].startswith(b"\x89PNG") and files["pdf"].startswith(b"%PDF")
    assert b"/Type3" not in files["pdf"], "fonts are embedded as TrueType"
    width, height = (int.from_bytes(files["png"][at : at + 4], "big") for at in (16, 20))
    assert (width, height) == tuple(pytest.approx(inches * PNG_DPI, abs=1) for inches in found.size)


def test_the_same_records_give_the_same_bytes_in_another_process(study_for: Callable[[str], Study]) -> None:
    words = [
        word for name in FIGURES for word in (name, str(study_for(name).root), study_for(name).plan.study)
    ]
    command = [sys.executable, "-c", DRAW, *words]
    there = subprocess.check_output(command, cwd=Path(__file__).parents[2], text=True).split()
    here = [render(drawing(name, study_for(name)), ("png", "pdf", "svg")) for name in FIGURES]
    assert there == [hashlib.sha256(data).hexdigest() for files in here for data in files.values()]


@pytest.mark.parametrize("name", FIGURES)
def test_a_study_without_runs_says_what_a_figure_lacks(name: str, tmp_path: Path) -> None:
    write_study(tmp_path, MAIN_ARMS)
    (tmp_path / "runs").rename(tmp_path / "away")
    lacks = FIGURES[name].read(load_study(tmp_path, "laptop"))
    assert isinstance(lacks, str) and lacks


def test_hostile_labels_are_drawn_as_they_are(tmp_path: Path) -> None:
    hostile = replace(FASTRL, label="$\\frac{1}{0}$ % _ <b> τ")
    write_study(tmp_path, [GRPO, hostile])
    study = load_study(tmp_path, "laptop")
    for name in ("figure1", "figure3", "figure7"):
        assert render(drawing(name, study), ("png", "svg"))


def test_the_threshold_panel_keeps_to_one_policy(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    write_study(tmp_path, [GRPO, FASTRL, *TAU_ARMS])
    plan = read_plan(tmp_path, "laptop")
    cells = tuple(replace(cell, model="another") if cell.tau == 0.4 else cell for cell in plan.cells)
    write_plan(tmp_path, replace(plan, cells=cells))
    figure = Figure()
    drawing("figure3", load_study(tmp_path, "laptop")).draw(figure)
    for panel in figure.axes[2:]:
        assert panel.lines[0].get_xdata().tolist() == [0.0, 0.2, 0.6, 0.8, 0.9, 1.0]


@pytest.mark.parametrize(("seeds", "ends"), [(1, None), (2, (1.0, 3.0)), (3, (-0.5, 4.5))])
def test_a_bar_is_the_interval_or_for_two_seeds_their_range(
    seeds: int, ends: tuple[float, float] | None
) -> None:
    by_seed = [1.0, 3.0, 2.0][:seeds]
    value = measured(mean(by_seed), ("a",))
    assert spread(value, by_seed) == (None if ends is None else pytest.approx(ends, abs=0.02))


def test_names_in_figure_1_overlap_neither_each_other_nor_the_frame(full: Study) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = drawing("figure1", full)
    with paper_style():
        figure = Figure(figsize=found.size, layout="constrained")
        FigureCanvasAgg(figure)
        found.draw(figure)
        figure.draw_without_rendering()
        axes = figure.axes[0]
        names = {point.arm.label for point in points(full)}
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text() in names]
        frame = axes.get_window_extent()
    assert len(boxes) == len(names) == len(FULL_ARMS)
    for index, box in enumerate(boxes):
        assert box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1
        assert box.y0 >= frame.y0 - 1 and box.y1 <= frame.y1 + 1
        for other in boxes[index + 1 :]:
            assert not box.overlaps(other)


def test_a_band_is_the_interval_over_seeds(full: Study) -> None:
    curve = track(full.steps, "step", "clock/total", "actor/entropy").curve(full.baseline)
    runs = list(full.baseline.runs.values())
    last = full.steps[(full.steps["step"] == 40) & full.steps["run_id"].isin(runs)]
    estimate = mean(last["actor/entropy"].to_numpy())
    assert estimate.ci is not None
    assert (curve.y[-1], curve.low[-1], curve.high[-1]) == pytest.approx((estimate.value, *estimate.ci))
    assert curve.x[-1] == pytest.approx(last["clock/total"].mean())
    assert len(curve.x) == 40


def test_a_step_that_one_seed_has_nothing_for_is_left_out_of_the_curve(full: Study) -> None:
    run = full.baseline.runs[0]
    spoilt = full.steps.copy()
    spoilt.loc[(spoilt["run_id"] == run) & (spoilt["step"] == 7), "actor/entropy"] = np.nan
    assert len(track(spoilt, "step", "step", "actor/entropy").curve(full.baseline).x) == 39


def test_lag_panels_keep_controls_in_the_panel_with_most_updates(lag: Study) -> None:
    found = panels(lag_arms(lag))
    assert sorted(found) == [4, 16]
    assert {line.label for line in found[4]} == {"GRPO", "FastRL, fixed updates", "FastRL, mini-batches"}
    controls = [line.label for lines in found.values() for line in lines if line.control]
    assert controls == ["GRPO, 5 updates"] and "GRPO, 5 updates" in {line.label for line in found[16]}
    assert all([arm.learning_rate for arm in line.arms] == [1e-4, 2e-4, 4e-4] for line in found[16])


def test_main_methods_have_colours_of_their_own_and_unknown_ones_a_steady_one() -> None:
    main = [arm.method for arm in MAIN_ARMS]
    assert len({colour(method) for method in main}) == len(main)
    assert colour("new_method") == colour("new_method")
    assert all(len(text_colour(method)) == 7 for method in [*main, "new_method"])
