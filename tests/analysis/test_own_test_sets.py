"""A study whose in-domain benchmark is each run's own test set, as that of the whole paper is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, write_evaluation, write_study

from analysis.comparison import read
from analysis.examples import examples
from analysis.figures import FIGURES
from analysis.figures.spec import Drawing, render
from analysis.measures import accuracy
from analysis.report import build_report
from analysis.study import Study, load_study
from analysis.tables import TABLES
from experiments.plan import OWN_TEST, read_plan, write_plan

SETS = {"geometry3k": 0.5, "geoqa8k_r1v": 0.7, "math": 0.6}
"""Training sets, each a benchmark too, and by how much the accuracies on it are scaled."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """GRPO and FastRL on three training sets, three seeds each; every run is tested on its own set alone."""
    root = tmp_path_factory.mktemp("own")
    cells = []
    for dataset, scale in SETS.items():
        arms = [replace(each, label=f"{each.label}, {dataset}", seeds=3) for each in (GRPO, FASTRL)]
        write_study(root, arms, "one")
        for cell in read_plan(root, "one").cells:
            run = root / "runs" / cell.run_id
            stage = f"evaluate-{dataset}"
            status = json.loads((run / "status.json").read_text())
            (run / "status.json").write_text(json.dumps({"train": status["train"], stage: status["train"]}))
            results = json.loads((run / "eval" / IN_DOMAIN / "results.json").read_text())
            accuracy = {
                name: scale * decoding["metrics"]["accuracy"]
                for name, decoding in results["decodings"].items()
            }
            shutil.rmtree(run / "eval")
            write_evaluation(run / "eval" / dataset, accuracy, cell.run_id, np.random.default_rng(cell.seed))
            cells.append(replace(cell, dataset=dataset, stages=("train", stage)))
    plan = read_plan(root, "one")
    report = replace(
        plan.report, in_domain=OWN_TEST, out_of_domain=(), tables=("table1", "table6"), figures=("figure1",)
    )
    write_plan(root, replace(plan, study="own", cells=tuple(cells), report=report))
    return load_study(root, "own")


def test_every_run_counts_on_the_set_that_it_was_trained_on(own: Study) -> None:
    assert own.set_aside == () and own.unfinished == ()
    readings = read(own, accuracy(OWN_TEST, "t1"))
    for arm in own.arms:
        there = read(own, accuracy(arm.dataset, "t1"))
        assert readings.by_seed(arm) == there.by_seed(arm) != {}
        assert set(there.by_run) == {cell.run_id for cell in own.plan.cells if cell.dataset == arm.dataset}


def test_each_arm_is_compared_with_the_baseline_of_its_own_set(own: Study) -> None:
    table = TABLES["table1"].build(own)
    assert [row.label for row in table.rows if "in the paper" not in row.label] == [
        arm.label for arm in own.arms
    ]
    at = next(index for index, each in enumerate(table.columns) if "own_t1_percent_minus" in each.key)
    changes = {row.label: row.values[at] for row in table.rows}
    for dataset in SETS:
        ours, base = (arm for arm in own.arms[::-1] if arm.dataset == dataset)
        change = changes[ours.label]
        assert change.n == 3
        assert set(change.run_ids) == {*ours.runs.values(), *base.runs.values()}
        assert changes[base.label].value is None, "a baseline's change from itself"


def test_paired_comparisons_stay_within_a_set(own: Study) -> None:
    table = TABLES["comparison"].build(own)
    runs = {cell.run_id: cell.dataset for cell in own.plan.cells}
    behind = [
        {runs[run] for run in value.run_ids} for row in table.rows for value in row.values if value.run_ids
    ]
    assert behind and all(len(sets) == 1 for sets in behind)
    assert any(column.header == "p (Holm)" for column in table.columns)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_builds(name: str, own: Study) -> None:
    table = TABLES[name].build(own)
    assert all(len(row.values) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_or_says_what_it_lacks(name: str, own: Study) -> None:
    found = FIGURES[name].read(own)
    assert render(found, ("png",))["png"] if isinstance(found, Drawing) else found


def test_the_report_calls_it_by_its_name(own: Study) -> None:
    page = build_report(own.root, "own", formats=("md",)).read_text(encoding="utf-8")
    assert "18 trained of 18 planned" in page
    groups = {column.group for column in TABLES["comparison"].build(own).columns}
    assert "Own test set, T = 1: change (points)" in groups


def test_the_data_table_lists_the_sets_by_their_names(own: Study) -> None:
    datasets = {row.label.partition(",")[0] for row in TABLES["table6"].build(own).rows}
    assert set(SETS) <= datasets and OWN_TEST not in datasets


def test_examples_are_those_of_the_first_set(own: Study) -> None:
    assert examples(own, 3) == "no record of the starting policy on questions with images"
