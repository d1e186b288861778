"""Print the resolved configuration of a cell or a run, as YAML.

fastrl show study=laptop cell=3        cell 3 of `fastrl plan study=laptop`, or cell=RUN_ID
fastrl show RUN_ID                     what a run was made from
fastrl show method=fastrl seed=1       any single cell
fastrl show study=NAME cell=3 --engine-config    what EasyR1 is given for it
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from experiments.commands.arguments import Words, add_config_folders, add_words, results_root, sorted_words
from experiments.errors import UserError
from experiments.identity import arm_id, run_id


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME cell=NUMBER, a run id, or the overrides of one cell")
    add_config_folders(parser)
    parser.add_argument(
        "--engine-config", action="store_true", help="the keys of EasyR1's own config that the cell sets"
    )


def execute(arguments: Namespace) -> int:
    words = sorted_words(arguments.words, bare=True)
    config = _run_config(words) if words.bare else _cell_config(words, arguments)
    print(f"# run {run_id(config)}, arm {arm_id(config)}")
    if arguments.engine_config:
        config = _engine_config(config)
    print(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), end="")
    return 0


def _engine_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    from experiments.easyr1_training import run_files
    from experiments.run_directory import RunDirectory
    from fastrl.engines.easyr1.settings import EASYR1_ENGINES
    from fastrl.engines.easyr1.translation import easyr1_config

    name = config["engine"]["name"]
    if name not in EASYR1_ENGINES:
        raise UserError(
            f"The engine {name} has no config but the cell's.",
            "command line, --engine-config",
            f"leave it out, or choose engine={EASYR1_ENGINES[0]}",
        )
    model = config["model"]
    run = RunDirectory(Path(config["paths"]["root"]) / "runs" / run_id(config))
    return easyr1_config(config, run_files(run, config, model.get("path", model["name"])))


def _run_config(words: Words) -> Mapping[str, Any]:
    from experiments.run_directory import RunDirectory

    return RunDirectory(results_root(words.overrides) / "runs" / words.bare[0]).config()


def _cell_config(words: Words, arguments: Namespace) -> Mapping[str, Any]:
    from experiments.compose import compose_cell
    from experiments.study import plan_study

    if words.study is None:
        return compose_cell(words.overrides, arguments.config_dir)
    plan, configs = plan_study(
        words.study, words.overrides, results_root(words.overrides), arguments.config_dir
    )
    numbers = {str(number): cell.run_id for number, cell in enumerate(plan.cells, start=1)}
    if words.cell in numbers:
        return configs[numbers[words.cell]]
    if words.cell in configs:
        return configs[words.cell]
    way_out = f"cell=1 to cell={len(numbers)}, or a run id; list them: fastrl plan study={plan.study}"
    what = (
        "No cell is named." if words.cell is None else f'The study "{plan.study}" has no cell "{words.cell}".'
    )
    raise UserError(what, "command line", way_out)
