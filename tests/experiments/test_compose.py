"""Composition: every option of every group works, values keep their meaning, own config trees add options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from experiments.compose import compose_cell
from experiments.config_tree import CONF, group_options, parse_overrides, quoted
from experiments.errors import UserError
from experiments.identity import IDENTITY_KEYS, TRANSIENT_KEYS
from experiments.schema import METHOD_PARTS
from experiments.sweep import expand, merged
from fastrl.method import build_method

METHODS = group_options([CONF], "method")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_composes_and_builds(method: str) -> None:
    config = compose_cell([f"method={method}"])
    assert list(config) == [*IDENTITY_KEYS, *TRANSIENT_KEYS]
    assert config["method"]["name"] == method
    built = build_method(config["method"])
    for part, registry in METHOD_PARTS.items():
        assert type(getattr(built, part)) is registry[config["method"][part]["name"]]


def test_methods_have_labels_of_their_own() -> None:
    labels = [compose_cell([f"method={method}"])["method"]["label"] for method in METHODS]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("group", "option"),
    [
        (group, option)
        for group in ("model", "dataset", "training", "engine", "cluster", "tracking")
        for option in group_options([CONF], group)
    ],
)
def test_every_option_of_every_group_composes(group: str, option: str) -> None:
    left_to_the_user = {
        "server": ["tracking.uri=http://localhost:5000"],
        "hub": ["model.path=owner/policy"],
        "paper": ["training.epochs=3"],
    }
    # A laptop policy has no room for the paper's prompts and responses, and goes with one data set.
    policy = ["model=hub", "model.path=owner/policy"] if group in ("dataset", "engine", "training") else []
    words = ["dataset=laptop_geometry", "engine=reference", "benchmark=laptop_geometry"]
    own = words if option == "laptop_llama" else []
    config = compose_cell([*policy, f"{group}={option}", *own, *left_to_the_user.get(option, [])])
    assert config[group]["name"] == option


@pytest.mark.parametrize("benchmark", group_options([CONF], "benchmark"))
def test_every_benchmark_composes_alone(benchmark: str) -> None:
    assert list(compose_cell([f"benchmark={benchmark}"])["benchmarks"]) == [benchmark]


def test_default_cell_is_grpo_on_the_laptop_benchmarks() -> None:
    config = compose_cell([])
    assert config["method"]["name"] == "grpo"
    assert config["seed"] == 0
    assert list(config["benchmarks"]) == ["laptop_figures", "laptop_figures_ood", "laptop_figures_shuffled"]


def test_tau_shorthand_reaches_every_mdap_selector() -> None:
    for method in METHODS:
        selector = compose_cell([f"method={method}", "fastrl.tau=0.35"])["method"]["selector"]
        assert selector.get("tau", 0.35) == 0.35


def test_values_have_their_declared_types() -> None:
    config = compose_cell(["method=fastrl", "fastrl.tau=1", "training.learning_rate=1"])
    assert type(config["method"]["selector"]["tau"]) is float
    assert type(config["training"]["learning_rate"]) is float
    assert yaml.safe_load(yaml.safe_dump(config)) == config


def test_composing_one_cell_leaves_the_next_one_alone() -> None:
    before = compose_cell(["method=fastrl"])
    compose_cell(["method=fastrl", "seed=5", "training.epochs=1"])["method"]["selector"]["tau"] = 0.0
    assert compose_cell(["method=fastrl"]) == before


def test_hydra_override_forms_work() -> None:
    assert compose_cell(["training.betas=[0.5,0.6]"])["training"]["betas"] == [0.5, 0.6]
    assert compose_cell(["++training.epochs=2"])["training"]["epochs"] == 2
    benchmarks = compose_cell(["~benchmarks.laptop_figures.decodings.t1"])["benchmarks"]
    assert "t1" not in benchmarks["laptop_figures"]["decodings"]
    assert compose_cell(["method=fastrl", "method/selector=all"])["method"]["selector"]["name"] == "all"


def test_later_override_of_a_key_wins() -> None:
    assert compose_cell(["seed=1", "seed=2"])["seed"] == 2


@pytest.mark.parametrize(
    "text", ["results", "/tmp/a b", "it's", 'say "x"', "a,b", "[x]", "\\", "ü=1", "${x}"[1:]]
)
def test_quoted_values_arrive_as_they_are(text: str) -> None:
    assert compose_cell([f"paths.root={quoted(text)}"])["paths"]["root"] == text


def test_own_config_tree_adds_options(tmp_path: Path) -> None:
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text("defaults: [grpo, _self_]\nname: mine\nlabel: Mine\n")
    config = compose_cell(["method=mine"], [tmp_path])
    assert config["method"]["name"] == "mine"
    assert config["method"]["objective"] == compose_cell([])["method"]["objective"]
    with pytest.raises(UserError, match='There is no method "mine"'):
        compose_cell(["method=mine"])


def test_a_seed_that_other_values_name_reaches_them(tmp_path: Path) -> None:
    training = yaml.safe_load((CONF / "training" / "laptop.yaml").read_text(encoding="utf-8"))
    own = {**training, "name": "warm", "warmup_steps": "${seed}"}
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "warm.yaml").write_text(yaml.safe_dump(own))
    cells = [compose_cell(["training=warm", f"seed={seed}"], [tmp_path]) for seed in (0, 3)]
    assert [(cell["seed"], cell["training"]["warmup_steps"]) for cell in cells] == [(0, 0), (3, 3)]


@pytest.mark.parametrize("seed", ["-1", "true", "1.5", "a"])
def test_a_seed_that_is_none_is_refused(seed: str) -> None:
    with pytest.raises(UserError, match="seed"):
        compose_cell([f"seed={seed}"])


def test_composing_needs_neither_torch_nor_the_heavy_packages() -> None:
    script = (
        "import sys\n"
        "from experiments.compose import compose_cell\n"
        "compose_cell(['method=fastrl'])\n"
        "heavy = ('torch', 'transformers', 'lm_eval', 'pandas', 'mlflow')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_sweeps_expand_to_their_product() -> None:
    cells = expand(["method=grpo,fastrl", "fastrl.tau=choice(0.2,0.4)", "seed=range(0,2)"], [CONF], "here")
    assert len(cells) == 8
    assert cells[0] == ("method=grpo", "fastrl.tau=0.2", "seed=0")
    assert cells[1] == ("method=grpo", "fastrl.tau=0.2", "seed=1")
    assert cells[-1] == ("method=fastrl", "fastrl.tau=0.4", "seed=1")


def test_glob_expands_to_the_options_of_a_group() -> None:
    assert [cell[0] for cell in expand(["method=glob(fastrl*)"], [CONF], "here")] == [
        f"method={name}" for name in METHODS if name.startswith("fastrl")
    ]


def test_merging_replaces_an_override_of_the_same_key() -> None:
    layers = [["training.epochs=1", "seed=0"], ["method=grpo", "seed=range(0,5)"], ["seed=7"]]
    assert merged(layers, "here") == ["training.epochs=1", "seed=7", "method=grpo"]


def test_parsing_names_where_a_bad_override_stands() -> None:
    with pytest.raises(UserError) as caught:
        parse_overrides(["seed"], "laptop.yaml, entry 2")
    assert caught.value.where == "laptop.yaml, entry 2"
