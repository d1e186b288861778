"""Each table of the registry, its provenance, and its text in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_images import write_image_study
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, MAIN_ARMS, TAU_ARMS, write_study

import analysis.reported
from analysis.render.csv_long import HEADER, render_csv
from analysis.render.latex import escape as latex_escape
from analysis.render.latex import render_latex
from analysis.render.markdown import render_markdown
from analysis.render.pdf import render_pdf
from analysis.reported import reported_figures
from analysis.statistics import Estimate
from analysis.study import Study, load_study
from analysis.table import Better, Column, Form, Row, Table
from analysis.tables import TABLES
from analysis.values import Source, derived, measured, missing, reported
from experiments.run_directory import RunDirectory

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = '50 % & #1_"$x$" \\end{tabular} <script>alert(1)</script> | τ≥0 [a] *b* `c` ~^ 😀\nnext'

EXAMPLE = Table(
    name="example",
    title="Every kind of value & 100 % of the marks",
    paper_item="Table 0",
    corner="Method_name",
    columns=(
        Column("accuracy_percent", "T = 1", 1, Better.HIGHER, Form.NUMBER, "In-domain accuracy (%)"),
        Column("change_points", "change", 1, Better.NEITHER, Form.DIFFERENCE, "In-domain accuracy (%)"),
        Column("time_s", "Time (s)", 2, Better.LOWER),
        Column("speed", "Speed", 2, Better.HIGHER, Form.RATIO, "Training"),
        Column("reported_speed", "Speed", 2, Better.NEITHER, Form.RATIO, "Paper, τ = 0.8"),
    ),
    rows=(
        Row(
            "GRPO",
            (
                measured(Estimate(0.9125, 5, (0.905, 0.92)), ("g1", "g0"), 100),
                missing(Source.DERIVED),
                measured(Estimate(30.0, 5, (29.5, 30.5)), ("g0", "g1")),
                derived(Estimate(1.0, 5, None), ("g0", "g1")),
                missing(Source.REPORTED),
            ),
        ),
        Row(
            HOSTILE,
            (
                measured(Estimate(0.8931, 3, (0.88, 0.906)), ("f0",), 100),
                derived(Estimate(-0.0194, 3, (-0.03, -0.009)), ("f0", "g0"), 100),
                measured(Estimate(14.0, 2, None), ("f0",)),
                derived(Estimate(2.14, 3, (2.0, 2.29)), ("f0", "g0")),
                reported(2.14, "Table 1 §4.2"),
            ),
        ),
        Row(
            "= nothing",
            (
                missing(Source.MEASURED, "no finished run"),
                derived(Estimate(-0.0001, 3, None), ("x",)),
                *(missing(Source.MEASURED) for _ in range(3)),
            ),
        ),
    ),
    notes=("Times are those of 1 CPU — nothing else.",),
    gaps=("1 of 9 runs missing or incomplete: 1 train_failed.",),
    seeds=True,
)


@pytest.mark.parametrize(
    ("suffix", "render"), [("md", render_markdown), ("tex", render_latex), ("csv", render_csv)]
)
def test_text_of_a_table_is_the_golden_file(suffix: str, render: object) -> None:
    assert callable(render)
    path = GOLDEN / f"example.{suffix}"
    with path.open(encoding="utf-8", newline="") as stream:
        assert render(EXAMPLE) == stream.read()


def test_a_csv_holds_every_value_with_its_provenance() -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(EXAMPLE))))
    assert tuple(rows[0]) == HEADER
    assert len(rows) == len(EXAMPLE.rows) * len(EXAMPLE.columns)
    assert {row["row"] for row in rows} == {"GRPO", HOSTILE, "'= nothing"}
    speed = next(row for row in rows if row["row"] == HOSTILE and row["column"] == "speed")
    assert (speed["value"], speed["n"], speed["source"]) == ("2.14", "3", "derived")
    assert speed["run_ids"] == "f0;g0"
    assert [row["value"] for row in rows if row["source"] == "reported"] == ["", "2.14"]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\N{FULLWIDTH EQUALS SIGN}"])
def test_words_of_a_csv_are_no_formulas_of_a_spreadsheet(first: str) -> None:
    hostile = f'{first}HYPERLINK("http://example.com")'
    table = replace(EXAMPLE, name=hostile, rows=(replace(EXAMPLE.rows[1], label=hostile),))
    rows = list(csv.DictReader(io.StringIO(render_csv(table), newline="")))
    assert {row[column] for row in rows for column in ("table", "row")} == {f"'{hostile}"}
    assert [row["value"] for row in rows if row["column"] == "change_points"] == ["-1.94"], "numbers stay"


def test_a_hostile_label_breaks_no_markdown_row() -> None:
    lines = [line for line in render_markdown(EXAMPLE).splitlines() if line.startswith("|")]
    bars = {line.replace("\\|", "").count("|") for line in lines}
    assert len(lines) == 2 + len(EXAMPLE.rows)
    assert len(bars) == 1
    assert not any("<script" in line.replace("\\<", "") for line in lines)


@pytest.mark.parametrize("character", list("%&#_{}$~^\\"))
def test_latex_specials_are_escaped(character: str) -> None:
    assert latex_escape(f"a{character}b") not in (f"a{character}b", "ab")


def test_a_row_that_starts_with_a_bracket_or_star_is_no_argument_of_the_line_before() -> None:
    assert latex_escape("[2pt]").startswith("{[}")
    assert latex_escape("*").startswith("{*}")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_registry_fills_from_records(name: str, study_for: Callable[[str], Study]) -> None:
    table = TABLES[name].build(study_for(name))
    assert table.name == name
    assert table.rows and table.columns
    assert all(len(row.values) == len(table.columns) for row in table.rows)
    assert len({column.key for column in table.columns}) == len(table.columns)
    for row in table.rows:
        for value in row.values:
            if value.value is not None and value.source is not Source.REPORTED:
                assert value.run_ids and value.n > 0


@pytest.mark.parametrize("name", TABLES)
def test_every_run_behind_a_value_is_one_of_the_study(name: str, study_for: Callable[[str], Study]) -> None:
    study = study_for(name)
    run_ids = {cell.run_id for cell in study.plan.cells}
    table = TABLES[name].build(study)
    assert {run for row in table.rows for value in row.values for run in value.run_ids} <= run_ids


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_a_study_without_runs_is_all_dashes(name: str, tmp_path: Path) -> None:
    write_study(tmp_path, [*MAIN_ARMS, *TAU_ARMS])
    (tmp_path / "runs").rename(tmp_path / "away")
    table = TABLES[name].build(load_study(tmp_path, "laptop"))
    measured_values = [v for row in table.rows for v in row.values if v.source is not Source.REPORTED]
    assert all(value.value is None for value in measured_values)
    if table.rows:
        assert any("runs missing or incomplete" in gap for gap in table.gaps)


def test_reported_values_stand_in_columns_of_their_own(full: Study) -> None:
    for spec in TABLES.values():
        table = spec.build(full)
        for column in range(len(table.columns)):
            sources = {row.values[column].source for row in table.rows}
            assert Source.REPORTED not in sources or len(sources) == 1


def test_the_baselines_speed_is_one_and_has_no_interval(full: Study) -> None:
    table = TABLES["table1"].build(full)
    column = next(i for i, c in enumerate(table.columns) if c.key.startswith("speed_of"))
    value = table.rows[0].values[column]
    assert table.rows[0].label == "GRPO"
    assert value.value == pytest.approx(1.0) and value.ci is None


def test_thresholds_come_in_order_with_the_main_arm_among_them(full: Study) -> None:
    labels = [row.label for row in TABLES["table7"].build(full).rows]
    assert labels == [f"FastRL τ={tau}" for tau in ("0", "0.2", "0.4", "0.6", "0.8", "0.9", "1")]


def test_pruning_rules_stand_beside_the_main_methods_once_each(full: Study) -> None:
    labels = [row.label for row in TABLES["table5"].build(full).rows]
    assert labels[:3] == ["GRPO", "FastRL", "CPPO"]
    assert {"Random 75 %, 2 kept", "CPPO, 2 kept"} < set(labels)
    assert len(set(labels)) == len(labels)


def test_a_missing_seed_is_told_under_the_table_and_shown_in_its_n(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO, FASTRL])
    status = tmp_path / "runs" / GRPO.run_id(1) / "status.json"
    record = json.loads(status.read_text())
    record[f"evaluate-{IN_DOMAIN}"]["state"] = "failed"
    status.write_text(json.dumps(record))
    table = TABLES["table1"].build(load_study(tmp_path, "laptop"))
    assert f"1 of 10 runs missing or incomplete: 1 evaluate-{IN_DOMAIN} failed." in table.gaps
    assert table.rows[0].n == 5
    assert table.rows[0].values[0].n == 4
    assert "(n=4)" in render_markdown(table)


def test_the_best_printed_value_is_best_and_a_lone_one_is_not() -> None:
    assert EXAMPLE.best_rows(0) == {0}
    assert EXAMPLE.best_rows(2) == {1}
    assert EXAMPLE.best_rows(1) == frozenset()
    assert EXAMPLE.best_rows(4) == frozenset()


def test_reported_figures_are_in_the_units_that_they_name() -> None:
    files = sorted(path.stem for path in Path(analysis.reported.__file__).parent.glob("*.csv"))
    figures = [figure for name in files for figure in reported_figures(name)]
    assert {figure.unit for figure in figures} == {
        "ratio",
        "percentage points",
        "percent",
        "hours",
        "seconds",
        "questions",
    }
    assert all(figure.item and figure.training_set and figure.metric for figure in figures)
    geoqa = {
        f.value
        for f in figures
        if f.training_set == "GeoQA8K" and f.method == "fastrl" and f.metric == "speed"
    }
    assert {2.22, 2.13} <= geoqa, "the paper's contradiction stays visible"


def test_a_run_that_saw_no_shuffled_images_is_told_under_the_table_of_images(tmp_path: Path) -> None:
    plan = write_image_study(tmp_path, [replace(GRPO, seeds=2), replace(FASTRL, seeds=2)], "images")
    run = RunDirectory(tmp_path / "runs" / plan.cells[0].run_id)
    stage = plan.cells[0].stages[-1]
    status = json.loads(run.status_path.read_text())
    status[stage]["state"] = "failed"
    run.status_path.write_text(json.dumps(status))
    table = TABLES["images"].build(load_study(tmp_path, "images"))
    own, shuffled = table.rows[0].values[:2]
    assert (own.n, shuffled.n) == (2, 1)
    assert own.value is not None and shuffled.value is not None and shuffled.value < own.value
    assert f"1 of 4 runs missing or incomplete: 1 {stage} failed." in table.gaps


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_each_time_in_every_format(name: str, study_for: Callable[[str], Study]) -> None:
    study = study_for(name)
    again = load_study(study.root, study.plan.study)
    for text in (render_markdown, render_latex, render_csv, render_pdf):
        assert text(TABLES[name].build(study)) == text(TABLES[name].build(again)) and text(EXAMPLE)
