"""Plan a study, run its cells on this machine, then write its report and track it.

  fastrl run study=laptop
  fastrl run study=laptop seed=0 training.epochs=1 --workers 2

Finished cells are kept, so the same command goes on after Ctrl-C, a crash or a failed cell.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from experiments.commands.arguments import (
    add_config_folders,
    add_words,
    named_study,
    results_root,
    sorted_words,
)


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, and overrides of every cell (a list of values multiplies the cells)")
    add_config_folders(parser)
    parser.add_argument(
        "--workers",
        type=_at_least_one,
        metavar="N",
        help="cells at a time (default: cluster.workers, one a core)",
    )
    parser.add_argument(
        "--no-report", action="store_true", help="stop after the runs, report and track nothing"
    )


def execute(arguments: Namespace) -> int:
    from experiments.commands.report_names import check_report_names
    from experiments.local.driver import run_study
    from experiments.plan import write_plan
    from experiments.study import plan_study

    words = sorted_words(arguments.words)
    root = results_root(words.overrides)
    plan, configs = plan_study(named_study(words), words.overrides, root, arguments.config_dir)
    check_report_names(plan)
    print(f"{plan.title}: {len(plan.cells)} cells in {len(plan.arms)} arms, results in {root}", flush=True)
    write_plan(root, plan)
    settings = configs[plan.cells[0].run_id]
    outcome = run_study(plan, configs, root, arguments.workers or settings["cluster"]["workers"])
    if outcome.interrupted or arguments.no_report:
        return outcome.exit_code

    from analysis.report import build_report

    print(f"report: {build_report(root=root, study=plan.study, only=None)}", flush=True)
    if settings["tracking"]["name"] != "none":
        from analysis.tracking.sync import sync_study

        print(sync_study(root, plan.study, settings["tracking"]["uri"]))
    return outcome.exit_code


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError(f"{number} is not at least 1")
    return number
