"""Plan a study and send what is left of it to a Slurm cluster; returns as soon as the jobs are in the queue.

  fastrl submit study=table1 cluster=my_site --dry-run      what would be sent, and what it costs
  fastrl submit study=table1 cluster=my_site --canary       one cell first, the others after its first step
  fastrl submit study=table1 cluster=my_site                again at any time: done cells are left, running
                                                            ones joined, failed ones listed
  fastrl submit study=table1 cluster=my_site --retry all    failed and lost ones too

Every cell is trained, evaluated and brought into the report by jobs that wait for each other.
"""

from __future__ import annotations

import shlex
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.commands.arguments import (
    add_config_folders,
    add_words,
    named_study,
    results_root,
    sorted_words,
)

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.plan import Cell, Plan
    from slurm.submit import Outcome

_SHOWN = 20


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, cluster=NAME, and overrides of every cell")
    add_config_folders(parser)
    parser.add_argument(
        "--retry", choices=("failed", "lost", "all"), help="send stages that ended badly again, too"
    )
    parser.add_argument(
        "--only",
        metavar="CELLS",
        help="cells by number, run id or label, separated by commas; * and ? stand for anything",
    )
    parser.add_argument("--limit", type=_at_least_one, metavar="N", help="send at most so many cells")
    parser.add_argument(
        "--canary", action="store_true", help="one cell first, the others after its first step"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be sent, and send nothing")


def execute(arguments: Namespace) -> int:
    from experiments.commands.report_names import check_report_names
    from experiments.plan import write_plan
    from experiments.stage import STAGES
    from experiments.study import plan_study
    from slurm.settings import settings_by_run
    from slurm.submit import Request, plan_submission, submit_study

    words = sorted_words(arguments.words)
    # Jobs start in folders of their own.
    root = results_root(words.overrides).resolve()
    plan, configs = plan_study(named_study(words), words.overrides, root, arguments.config_dir)
    check_report_names(plan)
    print(f"{plan.title}: {len(plan.cells)} cells in {len(plan.arms)} arms, results in {root}", flush=True)
    only = tuple(word for word in (arguments.only or "").split(",") if word)
    request = Request(arguments.retry, only, arguments.limit, arguments.canary, STAGES, time.time())
    if arguments.dry_run:
        outcome = plan_submission(plan, configs, root, request)
        _print_dry_run(plan, configs, root, outcome)
    else:
        # Refused before anything is written.
        settings_by_run(configs)
        write_plan(root, plan)
        outcome = submit_study(plan, configs, root, request)
        _print_sent(outcome)
    _print_decision(outcome)
    return 0


def _print_dry_run(
    plan: Plan, configs: Mapping[str, Mapping[str, Any]], root: Path, outcome: Outcome
) -> None:
    from experiments.commands.gpu_hours import gpu_hours
    from fastrl.engines.easyr1.settings import EASYR1_ENGINES
    from slurm.cost import expected_gpu_hours

    def derive(cell: Cell, stage: str) -> float | None:
        of_paper = stage == "train" and cell.engine in EASYR1_ENGINES
        return gpu_hours(configs[cell.run_id]).hours if of_paper else None

    for sent in outcome.arrays:
        print(f"\narray {sent.array.number}: {sent.array.name}, {_tasks(len(sent.array.tasks))}")
        for option in sent.options:
            print(f"  #SBATCH {shlex.quote(option)}")
        for index, task in list(sent.array.tasks.items())[:_SHOWN]:
            print(f"  task {index}: {task.run_id or plan.study} {task.stage}")
        if len(sent.array.tasks) > _SHOWN:
            print(f"  ... and {len(sent.array.tasks) - _SHOWN} more")
    cells = {cell.run_id: cell for cell in plan.cells}
    stages = [
        (cells[task.run_id], task.stage, sent.gpus)
        for sent in outcome.arrays
        for task in sent.array.tasks.values()
        if task.run_id
    ]
    if stages:
        print(f"\nexpected GPU-hours: {expected_gpu_hours(plan, root, stages, derive)}")
    print("dry run: nothing was sent")


def _print_sent(outcome: Outcome) -> None:
    for sent in outcome.arrays:
        after = f", after {sent.array.depends_on}" if sent.array.depends_on else ""
        print(f"job {sent.array.job_id}: {sent.array.name}, {_tasks(len(sent.array.tasks))}{after}")
    if outcome.folder is not None:
        print(f"scripts and Slurm's logs: {outcome.folder}")


def _print_decision(outcome: Outcome) -> None:
    from slurm.verdict import DAMAGED

    decision = outcome.decision
    for note in outcome.overview.notes:
        print(f"note: {note}")
    counts = Counter(view.verdict.state for _, view in decision.joined)
    joined = f" ({', '.join(f'{count} {state}' for state, count in counts.items())})" if counts else ""
    print(
        f"stages: {decision.done} done, {len(decision.joined)} under way{joined}, "
        f"{len(decision.send)} to send, {len(decision.left)} ended badly, "
        f"{len(decision.blocked)} waiting for those"
    )
    for cell, view in decision.left[:_SHOWN]:
        reason = f" ({view.verdict.detail.splitlines()[0]})" if view.verdict.detail else ""
        print(f"  {cell.label} seed {cell.seed} {view.stage}: {view.verdict.state}{reason} {cell.run_id}")
    if len(decision.left) > _SHOWN:
        print(f"  ... and {len(decision.left) - _SHOWN} more")
    if any(view.verdict.state not in DAMAGED for _, view in decision.left):
        print("send them again: --retry failed, lost or all; what they printed: fastrl logs RUN")
    elif not (decision.left or decision.send or decision.joined or decision.blocked):
        print("every stage is done")


def _tasks(count: int) -> str:
    return f"{count} task{'s' if count > 1 else ''}"


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError(f"{number} is not at least 1")
    return number
