"""Which reported figures stand beside an arm, and when a difference to them is given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_study import FASTRL, FULL_ARMS, GRPO, HARDWARE, SyntheticArm, write_study

from analysis.study import Study, load_study
from analysis.table import Table
from analysis.tables import TABLES
from analysis.values import Source
from experiments.plan import read_plan, write_plan


def study_on(root: Path, dataset: str, model: str, *more: SyntheticArm, clock: str = "cpu") -> Study:
    """GRPO, FastRL and more, as if they had trained another policy on another data set."""
    write_study(root, [replace(GRPO, seeds=3), replace(FASTRL, seeds=3), *more], clock=clock)
    plan = read_plan(root, "laptop")
    cells = tuple(replace(cell, dataset=dataset, model=model) for cell in plan.cells)
    write_plan(root, replace(plan, cells=cells))
    return load_study(root, "laptop")


def column(table: Table, key: str) -> int:
    return next(index for index, each in enumerate(table.columns) if each.key == key)


def test_a_laptops_figures_stand_beside_the_papers_first_set_without_a_difference(full: Study) -> None:
    table = TABLES["table1"].build(full)
    assert {each.group for each in table.columns if "Paper" in each.group} == {"Paper, Geometry3K"}
    row = next(each for each in table.rows if each.label == "FastRL")
    assert row.values[column(table, "reported_speed_Geometry3K")].value == 2.14
    assert not any("_minus_reported" in each.key for each in table.columns)
    assert any("No difference to the paper is given" in note for note in table.notes)


def test_the_papers_own_policy_and_data_have_a_difference(tmp_path: Path) -> None:
    study = study_on(tmp_path, "geometry3k", "qwen2_5_vl_7b")
    table = TABLES["table1"].build(study)
    fastrl = table.rows[1]
    measured = fastrl.values[column(table, "speed_of_training_time_CPU-s")]
    difference = fastrl.values[column(table, "speed_of_training_time_CPU-s_minus_reported_speed")]
    assert measured.value is not None and difference.value == pytest.approx(measured.value - 2.14)
    assert difference.source is Source.DERIVED and difference.run_ids == measured.run_ids
    assert not any("No difference" in note for note in table.notes)


def test_another_model_on_the_papers_data_has_none(tmp_path: Path) -> None:
    table = TABLES["table1"].build(study_on(tmp_path, "geoqa8k_r1v", "qwen2_5_vl_3b"))
    assert {each.group for each in table.columns if "Paper" in each.group} == {"Paper, GeoQA8K"}
    assert not any("_minus_reported" in each.key for each in table.columns)


def test_figures_that_contradict_each_other_have_rows_of_their_own(tmp_path: Path) -> None:
    table = TABLES["table1"].build(study_on(tmp_path, "geoqa8k_r1v", "Qwen2.5-VL-7B-Instruct"))
    assert [row.label for row in table.rows] == ["GRPO", "FastRL", "FastRL, in the paper's Table 2"]
    speeds = [row.values[column(table, "reported_speed")].value for row in table.rows]
    assert speeds == [None, 2.22, 2.13]
    again = table.rows[2].values
    assert all(value.value is None for value in again if value.source is Source.MEASURED)


def test_a_hub_model_is_known_by_its_path(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1), replace(FASTRL, seeds=1)])
    for config in tmp_path.glob("runs/*/config.yaml"):
        text = config.read_text().replace(
            "  name: laptop_llama\n", "  name: hub\n  path: Qwen/Qwen3-VL-8B-Instruct\n"
        )
        config.write_text(text)
    plan = read_plan(tmp_path, "laptop")
    write_plan(
        tmp_path,
        replace(plan, cells=tuple(replace(c, dataset="geometry3k", model="hub") for c in plan.cells)),
    )
    table = TABLES["table1"].build(load_study(tmp_path, "laptop"))
    assert table.rows[1].values[column(table, "reported_speed")].value is None, "2.14 is another model's"


def test_arms_on_other_data_are_not_compared(tmp_path: Path) -> None:
    study = study_on(tmp_path, "geometry3k", "qwen2_5_vl_7b")
    plan = study.plan
    cells = tuple(replace(c, dataset="math") if c.method == "fastrl" else c for c in plan.cells)
    write_plan(tmp_path, replace(plan, cells=cells))
    table = TABLES["table1"].build(load_study(tmp_path, "laptop"))
    speed = table.rows[1].values[column(table, "speed_of_training_time_CPU-s")]
    assert speed.value is None and "other training questions" in speed.note


def test_cost_counts_gpu_hours_where_there_are_gpus(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)])
    path = tmp_path / "runs" / GRPO.run_id(0) / "provenance.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "hardware": {**HARDWARE, "gpus": ["H20"] * 4}}))
    table = TABLES["cost"].build(load_study(tmp_path, "laptop"))
    log = (tmp_path / "runs" / GRPO.run_id(0) / "steps.jsonl").read_text().splitlines()
    seconds = sum(json.loads(line).get("timing_s/step", 0) for line in log)
    value = table.rows[0].values[column(table, "training_GPU-h")]
    assert value.value == pytest.approx(4 * seconds / 3600)


def test_the_first_step_is_told_apart_from_the_others(full: Study) -> None:
    first = full.steps[(full.steps["step"] == 1) & (full.steps["run_id"].isin(full.baseline.runs.values()))]
    later = full.steps[(full.steps["step"] > 1) & (full.steps["run_id"].isin(full.baseline.runs.values()))]
    row = TABLES["cost"].build(full).rows[0]
    table = TABLES["cost"].build(full)
    assert row.values[column(table, "first_step_CPU-s")].value == pytest.approx(first["cpu_s/step"].mean())
    assert row.values[column(table, "step_CPU-s")].value == pytest.approx(later["cpu_s/step"].mean())


def test_the_ablation_stands_beside_the_papers_change_out_of_domain(tmp_path: Path) -> None:
    without = replace(next(arm for arm in FULL_ARMS if arm.method == "fastrl_without_mdap"), seeds=3)
    study = study_on(tmp_path, "geoqa8k_r1v", "qwen2_5_vl_7b", without)
    table = TABLES["table2"].build(study)
    row = next(each for each in table.rows if each.label == without.label)
    found, paper = (row.values[column(table, key)] for key in (OOD_CHANGE, "reported_out_of_domain_change"))
    assert (paper.value, paper.source) == (-1.21, Source.REPORTED)
    difference = row.values[column(table, f"{OOD_CHANGE}_minus_reported_out_of_domain_change")]
    assert found.value is not None and difference.value == pytest.approx(found.value + 1.21)
    full = [each for each in table.rows if each.label.startswith("FastRL") and "w/o" not in each.label]
    speeds = [each.values[column(table, "reported_speed")].value for each in full]
    assert speeds == [2.13, 2.22], "Table 2's own, then the one of Table 1 that contradicts it"


OOD_CHANGE = "mean_of_1_t1_percent_minus_FastRL"


def test_pruning_rules_stand_beside_the_papers_average_out_of_domain(full: Study) -> None:
    table = TABLES["table5"].build(full)
    reported = {
        row.label: row.values[column(table, "reported_out_of_domain_Geometry3K")].value for row in table.rows
    }
    assert reported["FastRL"] == 52.63 and reported["Advantage only"] == 52.09
    measured = next(row for row in table.rows if row.label == "FastRL").values[
        column(table, "mean_of_1_t1_percent")
    ]
    assert measured.source is Source.MEASURED and measured.n == 5


@pytest.mark.parametrize(("samples", "difference"), [(8, False), (16, True)])
def test_several_responses_stand_beside_the_papers_gain_of_16(
    tmp_path: Path, samples: int, difference: bool
) -> None:
    study = study_on(tmp_path, "geometry3k", "qwen2_5_vl_7b")
    for path in tmp_path.glob("runs/*/eval/*/results.json"):
        path.write_text(path.read_text().replace("avg_at_8", f"avg_at_{samples}"))
    study = load_study(tmp_path, "laptop")
    table = TABLES["table4"].build(study)
    values = table.rows[1].values
    paper = values[column(table, "reported_avg_at_16_gain")]
    assert (paper.value, paper.source) == (3.15, Source.REPORTED)
    gain = values[column(table, f"mean_of_1_t1_avg_at_{samples}_percent_minus_GRPO")].value
    found = [index for index, each in enumerate(table.columns) if "_minus_reported" in each.key]
    assert bool(found) is difference, "8 responses are not 16"
    if found:
        assert gain is not None and values[found[0]].value == pytest.approx(gain - 3.15)


def test_stages_on_the_papers_own_setting_have_a_difference(tmp_path: Path) -> None:
    table = TABLES["table8"].build(study_on(tmp_path, "geometry3k", "qwen2_5_vl_7b", clock="wall"))
    step = next(row for row in table.rows if row.label == "step")
    measured, paper, difference = (
        step.values[column(table, key)].value
        for key in ("FastRL_s", "reported_fastrl_s", "FastRL_s_minus_reported_fastrl_s")
    )
    assert measured is not None and paper == 249.66 and difference == pytest.approx(measured - paper)


def test_stages_of_a_laptop_stand_beside_the_papers_first_set(full: Study) -> None:
    table = TABLES["table8"].build(full)
    generation = next(row for row in table.rows if row.label == "generation")
    assert generation.values[column(table, "reported_speed_Geometry3K")].value == 1.09
    assert not any("_minus_reported" in each.key for each in table.columns)
