"""Bad input: each is one error that names the thing, where it came from and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.compose import compose_cell
from experiments.config_tree import CONF
from experiments.errors import UserError
from experiments.study import plan_study
from experiments.sweep import expand


def error_of(*overrides: str) -> UserError:
    with pytest.raises(UserError) as caught:
        compose_cell(overrides)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) <= 24
    return caught.value


@pytest.mark.parametrize(
    ("override", "what", "way_out"),
    [
        ("method=fastlr", 'There is no method "fastlr"', 'did you mean "fastrl"?'),
        ("model=laptop_lama", 'There is no model "laptop_lama"', 'did you mean "laptop_llama"?'),
        (
            "dataset=geometry",
            'There is no dataset "geometry"',
            'did you mean "geometry3k"? options: geometry3k',
        ),
        ("method/selector=mdpa", 'There is no method/selector "mdpa"', 'did you mean "mdap"?'),
        ("benchmark=[laptop_geometry,aime]", 'There is no benchmark "aime"', "laptop_geometry_ood"),
        ("metod=grpo", 'called "metod"', 'did you mean "method"?'),
        ("sed=1", 'called "sed"', 'did you mean "seed"?'),
        ("training.epoch=1", 'no key in training called "epoch"', 'did you mean "epochs"?'),
        ("fastrl.taw=1", 'no key in fastrl called "taw"', 'did you mean "tau"?'),
        ("+training.epoch=1", "training.epoch=1: there is no such key", 'did you mean "epochs"?'),
        ("training.epochs=many", 'training.epochs="many" should be a valid integer', ""),
        ("training.epochs=1.5", "training.epochs=1.5 should be a valid integer", ""),
        ("training.learning_rate=true", "training.learning_rate=true should be a valid number", ""),
        ("training.learning_rate=nan", "training.learning_rate=NaN should be a finite number", ""),
        ("training.learning_rate=inf", "training.learning_rate=Infinity should be a finite number", ""),
        ("method.name=other", 'method.name="other" is not the name of its file', "name: grpo"),
        ("training.update_mode=mini", 'training.update_mode="mini"', "options: fixed, mini_batch"),
        ("training.epochs=???", "training.epochs can't be resolved: Missing mandatory value", ""),
        ("training.epochs=${nowhere}", "training.epochs can't be resolved", ""),
        ("seed=-1", "seed=-1 should be greater than or equal to 0", ""),
        ("seed=1,2", '"seed=1,2" names several values', "one value per key"),
        ("cluster.workers=0", "cluster.workers must be at least 1", ""),
        ("seed", '"seed" is not an override', "key=value"),
    ],
)
def test_misspelt_or_mistyped_override(override: str, what: str, way_out: str) -> None:
    error = error_of(override)
    assert what in error.what
    assert way_out in error.what + error.way_out
    assert override in error.where + error.what


@pytest.mark.parametrize("tau", ["-0.1", "1.2"])
def test_tau_outside_its_range_names_the_override_that_set_it(tau: str) -> None:
    error = error_of("method=fastrl", f"fastrl.tau={tau}")
    assert f"method.selector.tau={tau}" in error.what
    assert "[0, 1]" in error.what
    assert error.where == f'override "fastrl.tau={tau}"'


def test_value_wrong_in_a_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "method").mkdir()
    path = tmp_path / "method" / "odd.yaml"
    path.write_text("defaults: [grpo, _self_]\nname: odd\nlabel: Odd\nprune: never\n")
    with pytest.raises(UserError) as caught:
        compose_cell(["method=odd"], [tmp_path])
    assert caught.value.where == str(path)
    assert "method.prune" in caught.value.what


def test_copied_file_that_kept_its_name(tmp_path: Path) -> None:
    (tmp_path / "method").mkdir()
    path = tmp_path / "method" / "copy.yaml"
    path.write_text("defaults: [grpo, _self_]\nlabel: Copy\n")
    with pytest.raises(UserError) as caught:
        compose_cell(["method=copy"], [tmp_path])
    assert 'method.name="grpo"' in caught.value.what
    assert caught.value.where == str(path)
    assert caught.value.way_out == "write name: copy"


def test_value_wrong_in_a_file_of_ours_names_that_file() -> None:
    error = error_of("tracking=server")
    assert "tracking.uri is empty" in error.what
    assert error.where.endswith("conf/tracking/server.yaml")


def test_pruning_rate_without_whole_number_of_kept_lists_possible_rates() -> None:
    error = error_of("method=cppo", "method.selector.pruning_rate=0.3")
    assert "0.3" in error.what
    assert "possible rates" in error.what
    assert "method.selector.pruning_rate=0.3" in error.where


def test_pruning_rate_must_suit_every_number_of_rollouts() -> None:
    assert "rollouts" in error_of("method=cppo", "method/rollouts=ars").what


def test_data_set_smaller_than_a_step() -> None:
    for size in (0, 5):
        error = error_of(f"dataset.splits.sizes.train={size}")
        assert f"dataset.splits.sizes.train={size}" in error.what
        assert "questions" in error.way_out


def test_more_updates_than_trajectories() -> None:
    assert "training.updates=100000" in error_of("training.updates=100000").what


def test_mini_batches_that_do_not_divide() -> None:
    error = error_of("training.update_mode=mini_batch", "training.updates=7")
    assert "training.updates=7" in error.what


def test_questions_that_do_not_divide_over_ranks() -> None:
    assert "3 ranks" in error_of("engine.data_parallel=3").what


def test_token_budget_beyond_the_policy() -> None:
    error = error_of("training.max_response_tokens=100000")
    assert "max_positions" in error.what
    assert "at most" in error.way_out


@pytest.mark.parametrize(
    ("overrides", "key", "way_out"),
    [
        (["dataset=geometry3k"], "warmed up on laptop_figures, not on geometry3k", "dataset=laptop_figures"),
        (["engine=reference"], "engine=reference is not for", "engine=reference_vision"),
        (
            ["model=laptop_llama", "dataset=laptop_geometry", "engine=reference", "benchmark=laptop_figures"],
            "benchmark laptop_figures shows images",
            "benchmark=",
        ),
    ],
)
def test_what_a_laptop_policy_is_not_made_for(overrides: list[str], key: str, way_out: str) -> None:
    error = error_of(*overrides)
    assert key in error.what
    assert way_out in error.way_out


def test_a_laptop_policy_rehearses_on_the_other_engine() -> None:
    assert compose_cell(["engine=easyr1_cpu"])["engine"]["name"] == "easyr1_cpu"


def test_several_mistakes_are_listed_together() -> None:
    error = error_of("training.epochs=x", "training.learning_rate=y")
    assert "training.epochs" in error.what
    assert "training.learning_rate" in error.what


@pytest.mark.parametrize("override", ["seed=interval(0,1)", "method=glob(nothing*)", "seed=range(0,0)"])
def test_sweep_without_values(override: str) -> None:
    with pytest.raises(UserError) as caught:
        expand([override], [CONF], "here")
    assert override in caught.value.what
    assert caught.value.where == "here"


GOOD_STUDY: dict[str, Any] = {
    "title": "T",
    "baseline": "grpo",
    "clock": "cpu",
    "base": [],
    "cells": [{"group": "main", "overrides": "method=grpo"}],
    "report": {
        "tables": [],
        "figures": [],
        "in_domain": "laptop_geometry",
        "out_of_domain": [],
        "target_accuracy": 0.8,
    },
}


def study_error(folder: Path, content: object) -> UserError:
    (folder / "study").mkdir(exist_ok=True)
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (folder / "study" / "own.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        plan_study("own", [], folder / "results", [folder])
    assert caught.value.exit_code == 2
    assert not (folder / "results").exists()
    return caught.value


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"cells": []}, "has no cells"),
        ({"cells": None}, "has no cells"),
        ({"cells": [{"group": "main", "overrides": "method=fastlr"}]}, 'no method "fastlr"'),
        ({"cells": [{"group": "main", "override": "method=grpo"}]}, "cells.0.override"),
        ({"cells": [{"group": "main", "overrides": "seed=range(0, 2)"}]}, "is not an override"),
        ({"cells": [{"group": "main", "overrides": "seed=range(0,0)"}]}, "names no value"),
        ({"clock": "gpu"}, 'clock="gpu"'),
        ({"baseline": "gpro"}, 'baseline "gpro"'),
        ({"titel": "T"}, "titel"),
        ({"report": {**GOOD_STUDY["report"], "in_domain": "laptop"}}, 'no benchmark "laptop"'),
        ({"report": {**GOOD_STUDY["report"], "target_accuracy": "high"}}, "report.target_accuracy"),
    ],
)
def test_wrong_study_file(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    error = study_error(tmp_path, {**GOOD_STUDY, **change})
    assert complaint in error.what
    assert "own.yaml" in error.where or "override" in error.where


@pytest.mark.parametrize("text", ["", "- a\n", "cells: [\n", "just words"])
def test_study_file_that_is_no_study(tmp_path: Path, text: str) -> None:
    assert "own.yaml" in study_error(tmp_path, text).where


def test_unknown_study_lists_the_known_ones() -> None:
    with pytest.raises(UserError) as caught:
        plan_study("laptp", [], Path("results"))
    assert 'did you mean "laptop"?' in caught.value.way_out
    assert "laptop_full" in caught.value.way_out


def test_study_is_a_name_and_no_path(tmp_path: Path) -> None:
    write = tmp_path / "own.yaml"
    write.write_text(yaml.safe_dump(GOOD_STUDY))
    (tmp_path / "study").mkdir()
    with pytest.raises(UserError, match="There is no study"):
        plan_study("../own", [], tmp_path / "results", [tmp_path])
