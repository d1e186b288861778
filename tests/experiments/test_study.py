"""Studies: what a study file expands to, how cells merge, and how arms are named."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.compose import compose_cell
from experiments.config_tree import CONF, group_options
from experiments.errors import UserError
from experiments.identity import arm_id, run_id
from experiments.labels import distinct_labels
from experiments.plan import OWN_TEST, Cell, Plan, plan_path, read_plan, write_plan
from experiments.study import plan_study

STUDIES = group_options([CONF], "study")
REPORT = {
    "tables": ["table1"],
    "figures": [],
    "in_domain": "laptop_geometry",
    "out_of_domain": [],
    "target_accuracy": 0.8,
}


def write_study(folder: Path, cells: list[dict[str, Any]], **fields: Any) -> None:
    content = {"title": "T", "baseline": "grpo", "clock": "cpu", "base": [], "cells": cells, "report": REPORT}
    (folder / "study").mkdir(parents=True, exist_ok=True)
    (folder / "study" / "own.yaml").write_text(yaml.safe_dump({**content, **fields}))


def planned(
    folder: Path, cells: list[dict[str, Any]], overrides: tuple[str, ...] = (), **fields: Any
) -> Plan:
    write_study(folder, cells, **fields)
    return plan_study("own", overrides, folder / "results", [folder])[0]


def seeds_by_label(plan: Plan) -> dict[str, list[int]]:
    return {cells[0].label: [cell.seed for cell in cells] for cells in plan.arms.values()}


@pytest.fixture(scope="module")
def laptop_full() -> Plan:
    return plan_study("laptop_full", [], Path("results"))[0]


@pytest.mark.parametrize("study", STUDIES)
def test_every_study_plans(study: str) -> None:
    plan, configs = plan_study(study, [], Path("results"))
    assert [cell.run_id for cell in plan.cells] == list(configs)
    assert len(configs) == len(plan.cells) > 0
    labels = {cells[0].label for cells in plan.arms.values()}
    assert len(labels) == len(plan.arms)
    for cell in plan.cells:
        config = configs[cell.run_id]
        assert cell.run_id == run_id(config)
        assert cell.arm == arm_id(config)
        assert cell.stages == ("train", *(f"evaluate-{name}" for name in config["benchmarks"]))
        in_domain = cell.dataset if plan.report.in_domain == OWN_TEST else plan.report.in_domain
        shown = {in_domain, *plan.report.out_of_domain} if config["benchmarks"] else set()
        assert shown <= set(config["benchmarks"])
        assert run_id(compose_cell(cell.overrides)) == cell.run_id
    assert all(len({cell.label for cell in cells}) == 1 for cells in plan.arms.values())
    assert plan.baseline in labels | {cell.method for cell in plan.cells}


@pytest.mark.parametrize(("study", "third_seed"), [("laptop", ("GRPO", "FastRL")), ("laptop_text", ())])
def test_laptop_compares_six_methods_and_three_taus(study: str, third_seed: tuple[str, ...]) -> None:
    plan, _ = plan_study(study, [], Path("results"))
    assert seeds_by_label(plan) == {
        label: [0, 1, 2] if label in third_seed else [0, 1]
        for label in (
            "GRPO", "DAPO", "GSPO", "CPPO", "GRESO", "FastRL", "FastRL τ=0.6", "FastRL τ=1",
        )
    }  # fmt: skip
    assert {cell.tau for cell in plan.cells if "tau" in cell.groups} == {0.6, 0.8, 1.0}


@pytest.mark.parametrize("study", ["laptop_full", "laptop_text_full"])
def test_the_full_studies_have_ten_seeds_for_the_close_methods_and_five_for_the_rest(study: str) -> None:
    plan, _ = plan_study(study, [], Path("results"))
    seeds = {label: len(found) for label, found in seeds_by_label(plan).items()}
    assert {label for label, count in seeds.items() if count == 10} == {"GRPO", "CPPO", "FastRL"}
    assert set(seeds.values()) == {10, 5}
    assert len(seeds) == 22
    assert len(plan.cells) == 3 * 10 + 19 * 5


def test_laptop_full_holds_the_arms_of_each_table(laptop_full: Plan) -> None:
    methods: dict[str, set[str]] = {}
    for cell in laptop_full.cells:
        for group in cell.groups:
            methods.setdefault(group, set()).add(cell.method)
    assert methods["main"] == {
        "grpo", "dapo", "gspo", "cppo", "greso", "fastrl", "fastrl_dapo", "fastrl_gspo",
    }  # fmt: skip
    assert methods["ablation"] == {"grpo", "fastrl", "fastrl_without_mdap", "fastrl_without_ars"}
    assert methods["pruning"] == {
        "grpo", "fastrl", "cppo", "advantage_only", "random_25", "random_50", "random_75", "cppo_2_kept",
    }  # fmt: skip
    assert {cell.tau for cell in laptop_full.cells if "tau" in cell.groups} == {0, 0.2, 0.4, 0.6, 0.8, 0.9, 1}


def test_parity_arm_prunes_nothing_and_keeps_its_rollouts() -> None:
    plan, configs = plan_study("laptop_full", ["seed=0"], Path("results"))
    (parity,) = [cell for cell in plan.cells if cell.group == "parity"]
    method = configs[parity.run_id]["method"]
    assert method["selector"]["tau"] == 0
    assert method["rollouts"] == {"name": "fixed", "n": 8}


def test_laptop_lag_crosses_updates_with_learning_rates() -> None:
    plan, configs = plan_study("laptop_lag", [], Path("results"))
    assert {cell.groups for cell in plan.cells} == {("lag",)}
    training = [(cell.method, configs[cell.run_id]["training"]) for cell in plan.cells]
    crossed = Counter(
        (method, own["update_mode"], own["updates"], own["learning_rate"]) for method, own in training
    )
    expected = {
        (method, mode, updates, rate)
        for method, mode, updates in [
            ("grpo", "fixed", 4), ("grpo", "fixed", 16), ("grpo", "fixed", 5),
            ("fastrl", "fixed", 4), ("fastrl", "fixed", 16),
            ("fastrl", "mini_batch", 4), ("fastrl", "mini_batch", 16),
        ]
        for rate in (1e-4, 2e-4, 4e-4)
    }  # fmt: skip
    assert crossed == dict.fromkeys(expected, 3)
    baseline = plan.cells[0]
    assert baseline.method == plan.baseline
    assert baseline.label == "GRPO, 4 updates, lr 2e-4"


def test_a_cell_reached_twice_is_one_with_all_its_groups(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        [
            {"group": "main", "overrides": "method=grpo,fastrl"},
            {"group": "tau", "label": "τ is {tau}", "overrides": "method=fastrl fastrl.tau=0.8,0.9"},
            {"group": "main", "overrides": "method=fastrl"},
        ],
    )
    assert [(cell.label, cell.group, cell.groups) for cell in plan.cells] == [
        ("GRPO", "main", ("main",)),
        ("FastRL", "main", ("main", "tau")),
        ("τ is 0.9", "tau", ("tau",)),
    ]


def test_a_cell_reached_twice_is_evaluated_on_the_benchmarks_of_both(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        [
            {"group": "a", "overrides": "benchmark=[laptop_geometry]"},
            {"group": "b", "overrides": "benchmark=[laptop_geometry_ood]"},
        ],
    )
    assert [cell.stages for cell in plan.cells] == [
        ("train", "evaluate-laptop_geometry", "evaluate-laptop_geometry_ood")
    ]


def test_command_line_overrides_replace_those_of_every_entry(tmp_path: Path) -> None:
    cells = [
        {"group": "a", "overrides": "method=grpo seed=range(0,5)"},
        {"group": "b", "overrides": "method=fastrl training.epochs=1,2"},
    ]
    plan = planned(tmp_path, cells, ("seed=7,8", "training.epochs=3"))
    assert seeds_by_label(plan) == {"GRPO": [7, 8], "FastRL": [7, 8]}
    assert all("training.epochs=3" in cell.overrides for cell in plan.cells)


def test_base_applies_to_every_cell_and_an_entry_replaces_it(tmp_path: Path) -> None:
    write_study(
        tmp_path,
        [{"group": "a", "overrides": "seed=1"}, {"group": "a", "overrides": "seed=2 training.epochs=4"}],
        base=["training.epochs=2"],
    )
    plan, configs = plan_study("own", [], tmp_path / "results", [tmp_path])
    assert [configs[cell.run_id]["training"]["epochs"] for cell in plan.cells] == [2, 4]


def test_root_reaches_every_config_and_no_overrides(tmp_path: Path) -> None:
    root = tmp_path / "odd, [name]='x'"
    plan, configs = plan_study("laptop", ["seed=0"], root)
    assert {config["paths"]["root"] for config in configs.values()} == {str(root)}
    assert not any("paths" in override for cell in plan.cells for override in cell.overrides)
    assert [cell.run_id for cell in plan.cells] == [
        cell.run_id for cell in plan_study("laptop", ["seed=0"], tmp_path)[0].cells
    ]


def test_arms_that_would_share_a_label_get_what_differs(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        [
            {"group": "a", "overrides": "method=fastrl fastrl.tau=0.6,1.0"},
            {
                "group": "a",
                "overrides": "method=grpo training.learning_rate=1e-4,2.5e-4 training.updates=2,4",
            },
        ],
    )
    assert [cell.label for cell in plan.cells] == [
        "FastRL τ=0.6",
        "FastRL τ=1",
        "GRPO learning_rate=1e-4, updates=2",
        "GRPO learning_rate=1e-4, updates=4",
        "GRPO learning_rate=2.5e-4, updates=2",
        "GRPO learning_rate=2.5e-4, updates=4",
    ]


def test_labels_stay_distinct_when_a_written_label_takes_a_made_one() -> None:
    cells = [
        ("FastRL τ=0.6", compose_cell(["method=grpo"])),
        ("FastRL", compose_cell(["method=fastrl", "fastrl.tau=0.6"])),
        ("FastRL", compose_cell(["method=fastrl", "fastrl.tau=0.8"])),
    ]
    labels = distinct_labels(cells)
    assert len(set(labels.values())) == len(labels) == 3


def test_label_template_with_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        planned(tmp_path, [{"group": "a", "label": "τ={taw}", "overrides": "method=fastrl fastrl.tau=0.6"}])
    assert 'did you mean "tau"?' in caught.value.way_out
    assert "entry 1" in caught.value.where


def test_plan_file_round_trips(tmp_path: Path, laptop_full: Plan) -> None:
    assert write_plan(tmp_path, laptop_full) == plan_path(tmp_path, "laptop_full")
    assert read_plan(tmp_path, "laptop_full") == laptop_full
    assert [path.name for path in plan_path(tmp_path, "laptop_full").parent.iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[]", "schema"),
        ('{"schema": 99}', "schema 99"),
        ('{"schema": 1, "cells": []}', "field"),
        ('{"schema": 1, "cells": [{"run_id": "x"}], "report": {}}', "field"),
    ],
)
def test_a_damaged_plan_is_named_with_the_way_out(tmp_path: Path, content: str, complaint: str) -> None:
    path = plan_path(tmp_path, "laptop")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(UserError, match=complaint) as caught:
        read_plan(tmp_path, "laptop")
    assert caught.value.where == str(path)
    assert "fastrl run study=laptop" in caught.value.way_out
    assert caught.value.exit_code == 1


def test_cells_are_frozen(laptop_full: Plan) -> None:
    cell: Cell = laptop_full.cells[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        cell.label = "other"  # type: ignore[misc]
