"""List the cells of a study, running and writing nothing.

fastrl plan study=laptop
fastrl plan study=laptop method=fastrl fastrl.tau=0.5,0.7 seed=0
fastrl plan study=paper --arms

Of a study that trains on EasyR1's GPUs also the GPU-hours that the paper's times imply, and what it waits
for.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.commands.arguments import (
    Words,
    add_config_folders,
    add_words,
    named_study,
    results_root,
    sorted_words,
)
from experiments.commands.text_table import text_table
from experiments.plan import Plan

Configs = Mapping[str, Mapping[str, Any]]


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, and overrides of every cell (a list of values multiplies the cells)")
    add_config_folders(parser)
    parser.add_argument("--arms", action="store_true", help="one line an arm instead of one a cell")


def execute(arguments: Namespace) -> int:
    from experiments.commands.report_names import check_report_names
    from experiments.study import plan_study

    words = sorted_words(arguments.words)
    root = results_root(words.overrides)
    plan, configs = plan_study(named_study(words), words.overrides, root, arguments.config_dir)
    check_report_names(plan)
    print(plan.title)
    print(_arms(plan) if arguments.arms else _cells(plan))
    print(f"{len(plan.cells)} cells in {len(plan.arms)} arms; run them: fastrl run study={plan.study}")
    on_gpus = {run: config for run, config in configs.items() if config["engine"].get("worker") == "gpu"}
    if on_gpus:
        _print_needs(plan, on_gpus, words, root, arguments.config_dir)
    return 0


def _print_needs(plan: Plan, configs: Configs, words: Words, root: Path, folders: Sequence[Path]) -> None:
    """GPU-hours, and what the study, or each one that it is made of, waits for."""
    from experiments.commands.gpu_hours import hours_table
    from experiments.commands.waiting import replayed_schedules, waiting_table
    from experiments.config_tree import CONF
    from experiments.study import plan_study, read_study

    print(f"\n{hours_table(configs)}")
    parts = read_study(plan.study, (CONF, *folders))[1].studies
    plans: dict[str, tuple[Plan, Configs]] = {plan.study: (plan, configs)}
    if parts:
        plans = {name: plan_study(name, words.overrides, root, folders) for name in parts}
    print(f"\n{waiting_table(plans, root)}")
    for sentence in replayed_schedules(configs, root):
        print(sentence)


def _cells(plan: Plan) -> str:
    rows = [
        [str(number), cell.label, str(cell.seed), ",".join(cell.groups), cell.run_id]
        for number, cell in enumerate(plan.cells, start=1)
    ]
    return text_table(["cell", "label", "seed", "groups", "run"], rows)


def _arms(plan: Plan) -> str:
    rows = []
    for arm, cells in plan.arms.items():
        groups = dict.fromkeys(group for cell in cells for group in cell.groups)
        rows.append([cells[0].label, ",".join(str(cell.seed) for cell in cells), ",".join(groups), arm])
    return text_table(["label", "seeds", "groups", "arm"], rows)
