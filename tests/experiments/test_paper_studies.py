"""The studies of the paper's tables and figures: which cells each has, and that they share their runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import main
from experiments.config_tree import CONF
from experiments.plan import Plan, plan_path
from experiments.study import plan_study
from fastrl.engines.easyr1.step_records import flat
from fastrl.engines.easyr1.translation import RunFiles, easyr1_config

PARTS = tuple(yaml.safe_load((CONF / "study" / "paper.yaml").read_text(encoding="utf-8"))["studies"])
METHODS = {"grpo", "dapo", "gspo", "cppo", "greso", "fastrl"}
OUT_OF_DOMAIN = ("mathvision", "mathvista", "mathverse", "wemath")
FILES = RunFiles("policy", "train", "test", None, None, "reward.py", {}, "checkpoints")

Studies = dict[str, tuple[Plan, dict[str, dict[str, Any]]]]


@pytest.fixture(scope="module")
def studies() -> Studies:
    return {name: plan_study(name, [], Path("results")) for name in ("paper", *PARTS)}


def methods(plan: Plan, group: str | None = None) -> Counter[tuple[str, str, str]]:
    cells = [cell for cell in plan.cells if group is None or group in cell.groups]
    return Counter((cell.model, cell.dataset, cell.method) for cell in cells)


def test_every_table_and_figure_has_its_study() -> None:
    tables = {f"table{number}" for number in range(1, 10)}
    assert tables | {"figure1", "figure3", "figure5", "figure6", "figure7"} <= set(PARTS)


def test_the_paper_is_the_union_with_each_run_once(studies: Studies) -> None:
    paper = [cell.run_id for cell in studies["paper"][0].cells]
    parts = {run for name in PARTS for run in studies[name][1]}
    assert len(paper) == len(set(paper)) == 54
    assert set(paper) == parts
    assert sum(len(studies[name][1]) for name in PARTS) > 2 * len(paper)  # most are shared


def test_a_run_is_evaluated_on_the_benchmarks_of_every_study_that_names_it(studies: Studies) -> None:
    whole = {cell.run_id: set(cell.stages) for cell in studies["paper"][0].cells}
    for name in PARTS:
        assert all(set(cell.stages) <= whole[cell.run_id] for cell in studies[name][0].cells), name


@pytest.mark.parametrize("name", PARTS)
def test_the_report_shows_what_the_study_is_called_after(name: str, studies: Studies) -> None:
    report = studies[name][0].report
    assert name.partition("_")[0] in (*report.tables, *report.figures)


def test_table1_crosses_six_methods_with_two_sets_and_two_policies(studies: Studies) -> None:
    plan, configs = studies["table1"]
    assert methods(plan) == {
        (model, dataset, method): 1
        for model in ("qwen2_5_vl_7b", "qwen3_vl_8b")
        for dataset in ("geometry3k", "geoqa8k_r1v")
        for method in METHODS
    }
    for cell in plan.cells:
        assert set(configs[cell.run_id]["benchmarks"]) == {cell.dataset, *OUT_OF_DOMAIN}


def test_the_ablation_leaves_out_each_half_on_both_sets(studies: Studies) -> None:
    plan, configs = studies["table2"]
    parts = {"grpo", "fastrl", "fastrl_without_mdap", "fastrl_without_ars"}
    wanted = {("qwen2_5_vl_7b", each, part): 1 for each in ("geometry3k", "geoqa8k_r1v") for part in parts}
    assert methods(plan, "ablation") == wanted
    schedules = {
        cell.dataset: configs[cell.run_id]["method"]["rollouts"]["values"]
        for cell in plan.cells
        if cell.method == "fastrl_without_mdap"
    }
    for dataset, mean, epochs in (("geometry3k", 7.34, 25), ("geoqa8k_r1v", 6.11, 15)):
        values = schedules[dataset]
        played = [*values, *[values[-1]] * epochs][:epochs]
        assert sum(played) / epochs == pytest.approx(mean, abs=0.05)


def test_table3_is_text_on_math_and_both_years_of_aime(studies: Studies) -> None:
    plan, configs = studies["table3"]
    assert methods(plan) == {("llama3_1_8b", "math", method): 1 for method in METHODS}
    for config in configs.values():
        assert list(config["benchmarks"]) == ["math", "aime24", "aime25"]
        assert config["benchmarks"]["math"]["split"] == config["dataset"]["split"] == "released"


def test_table4_asks_for_sixteen_responses(studies: Studies) -> None:
    _, configs = studies["table4"]
    for config in configs.values():
        sampled = [each["decodings"]["t1"]["samples"] for each in config["benchmarks"].values()]
        assert sampled == [16] * 5
        assert all(16 in each["pass_k"] for each in config["benchmarks"].values())


def test_table5_has_the_random_rules_and_advantages_alone(studies: Studies) -> None:
    plan, _ = studies["table5"]
    assert {cell.method for cell in plan.cells if "pruning" in cell.groups} == {
        "random_25", "random_50", "random_75", "advantage_only",
    }  # fmt: skip
    assert {cell.dataset for cell in plan.cells} == {"geometry3k"}


def test_table7_sweeps_the_threshold_in_three_settings(studies: Studies) -> None:
    plan, _ = studies["table7"]
    swept: dict[tuple[str, str], set[float | None]] = {}
    for cell in plan.cells:
        if "tau" in cell.groups:
            swept.setdefault((cell.model, cell.dataset), set()).add(cell.tau)
    settings = {("qwen2_5_vl_7b", "geometry3k"), ("qwen2_5_vl_7b", "geoqa8k_r1v"), ("llama3_1_8b", "math")}
    assert swept == {each: {0.6, 0.7, 0.8, 0.9, 1.0} for each in settings}


def test_figure6_has_four_updates_a_step_beside_sixteen(studies: Studies) -> None:
    plan, configs = studies["figure6"]
    updates = {(cell.method, cell.group): configs[cell.run_id]["training"]["updates"] for cell in plan.cells}
    assert updates == {
        ("grpo", "low_lag"): 4, ("fastrl", "low_lag"): 4, ("grpo", "main"): 16, ("fastrl", "main"): 16,
    }  # fmt: skip


def test_every_cell_is_the_published_setup_in_easyr1s_own_words(studies: Studies) -> None:
    plan, configs = studies["paper"]
    epochs = {"geometry3k": 25, "geoqa8k_r1v": 15, "math": 3, "os_atlas": 1}
    gpus = {"qwen2_5_vl_7b": 4, "qwen3_vl_8b": 8, "llama3_1_8b": 4, "qwen3_5_9b": 32}
    clips = {"dapo": (0.2, 0.28), "gspo": (3e-4, 4e-4)}
    for cell in plan.cells:
        config = flat(easyr1_config(configs[cell.run_id], FILES))
        batch = 128 if cell.dataset == "os_atlas" else 256
        updates = 4 if cell.dataset == "os_atlas" or "low_lag" in cell.groups else 16
        length = {"math": 4096, "os_atlas": 10240}.get(cell.dataset, 2048)
        published = {
            "worker/actor/optim/lr": 1e-6,
            "worker/actor/optim/weight_decay": 1e-2,
            "worker/rollout/n": 8,
            "data/rollout_batch_size": batch,
            "worker/actor/global_batch_size": batch // updates,
            "data/max_response_length": length,
            "trainer/total_epochs": epochs[cell.dataset],
            "worker/actor/clip_ratio_low": clips.get(cell.method, (0.2, 0.3))[0],
            "worker/actor/clip_ratio_high": clips.get(cell.method, (0.2, 0.3))[1],
            "worker/actor/clip_ratio_dual": 3.0,
            "algorithm/use_kl_loss": cell.method not in clips,
            "algorithm/kl_coef": 0.0 if cell.method in clips else 1e-2,
        }
        assert {key: config[key] for key in published} == published, cell.run_id
        assert config["trainer/nnodes"] * config["trainer/n_gpus_per_node"] == gpus[cell.model]
        assert cell.tau in (None, 0.8) or "tau" in cell.groups


def test_more_seeds_are_one_word_on_the_command_line(studies: Studies) -> None:
    assert {cell.seed for cell in studies["paper"][0].cells} == {0}
    plan, _ = plan_study("table8", ["seed=range(0,3)"], Path("results"))
    assert {cell.seed for cell in plan.cells} == {0, 1, 2}
    assert {run.seed for run in plan.cells if run.run_id in studies["table8"][1]} == {0}


def test_the_plan_says_what_it_costs_and_waits_for(
    studies: Studies, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "study=paper", "--arms", f"paths.root={tmp_path}"]) == 0
    printed = capsys.readouterr().out
    assert "54 cells in 54 arms" in printed
    assert "GPU-hours of training, derived" in printed
    lines = {line.split("  ")[0]: " ".join(line.split()) for line in printed.splitlines()}
    assert lines["table1"] == ("table1 24 0 24 trainings, 120 evaluations, data: geometry3k, geoqa8k_r1v")
    assert lines["table6"] == "table6 4 0 data: geometry3k, geoqa8k_r1v, math, os_atlas"
    assert lines["Qwen3.5-9B"] == "Qwen3.5-9B OS-Atlas grounding 2 0 of 2 unknown"
    assert printed.count("until then its values are a stand-in") == 2
    assert list(tmp_path.iterdir()) == []


def test_a_report_of_nothing_run_has_the_papers_figures_and_dashes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "study=table8", f"paths.root={tmp_path}", "--format", "md"]) == 0
    assert plan_path(tmp_path, "table8").is_file()
    text = (tmp_path / "studies" / "table8" / "report.md").read_text(encoding="utf-8")
    step = next(line for line in text.splitlines() if line.startswith("| step"))
    assert step == "| step | — | — | — | 534.96 | — | 249.66 | — | — | — |"
    assert "train not started: GRPO, seeds 0; FastRL, seeds 0." in text
    assert capsys.readouterr().out.strip().endswith("report.md")


def test_the_data_table_needs_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "study=table6", f"paths.root={tmp_path}", "--format", "md"]) == 0
    text = (tmp_path / "studies" / "table6" / "report.md").read_text(encoding="utf-8")
    assert "| geometry3k, train | — | — | — | 2101 |" in text
    assert "| os\\_atlas, train | — | — | — | 50000 |" in text
    assert capsys.readouterr().out
