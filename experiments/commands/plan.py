"""List the cells of a study, running and writing nothing.

fastrl plan study=laptop
fastrl plan study=laptop method=fastrl fastrl.tau=0.5,0.7 seed=0
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from experiments.commands.arguments import (
    add_config_folders,
    add_words,
    named_study,
    results_root,
    sorted_words,
)
from experiments.commands.text_table import text_table
from experiments.plan import Plan


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, and overrides of every cell (a list of values multiplies the cells)")
    add_config_folders(parser)
    parser.add_argument("--arms", action="store_true", help="one line an arm instead of one a cell")


def execute(arguments: Namespace) -> int:
    from experiments.commands.report_names import check_report_names
    from experiments.study import plan_study

    words = sorted_words(arguments.words)
    plan, _ = plan_study(
        named_study(words), words.overrides, results_root(words.overrides), arguments.config_dir
    )
    check_report_names(plan)
    print(plan.title)
    print(_arms(plan) if arguments.arms else _cells(plan))
    print(f"{len(plan.cells)} cells in {len(plan.arms)} arms; run them: fastrl run study={plan.study}")
    return 0


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
