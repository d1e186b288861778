"""Write the tables, figures and report page of a study from its runs, finished or not, or not begun.

fastrl report study=laptop
fastrl report study=laptop --only table1,figure3 --format md,tex
fastrl report study=laptop --check --against docs/results/laptop
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from experiments.commands.arguments import (
    add_words,
    named_study,
    refuse_overrides,
    results_root,
    sorted_words,
)
from experiments.errors import UserError
from experiments.plan import plan_path


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, and paths.root=FOLDER when the results lie elsewhere")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these tables and figures, not all of the study"
    )
    parser.add_argument(
        "--format",
        "--formats",
        dest="formats",
        nargs="+",
        metavar="FORMAT",
        help="of md tex csv html png pdf svg (default: all)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit with 1 and name each file of a report that the records do not give",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FOLDER",
        help="with --check: the report to check (default: the one in the results folder)",
    )


def execute(arguments: Namespace) -> int:
    only, formats = _names(arguments.only), _names(arguments.formats)
    # A flag of many words takes those that follow it too; no name has an = in it.
    flagged = [*(arguments.only or ()), *(arguments.formats or ())]
    words = sorted_words([*arguments.words, *(word for word in flagged if "=" in word)])
    study = named_study(words)
    refuse_overrides(words, ("paths",), "a report shows the runs of the study's plan")
    for flag, found in (("--only", only), ("--format", formats)):
        if found == []:
            raise UserError(
                f"{flag} names nothing.", "command line", f"leave it out, or write {flag} NAME,NAME"
            )
    if arguments.against and not arguments.check:
        raise UserError("--against says what --check checks.", "command line", "add --check")
    from analysis.report import FORMATS, build_report, check_report, check_request

    root = results_root(words.overrides)
    check_request(only, formats or FORMATS)
    if arguments.check:
        folder = arguments.against or root / "studies" / study
        different = check_report(root, study, folder, only, formats or FORMATS)
        for line in different:
            print(f"{folder}/{line}")
        if not different:
            print(f"{folder} is what the records give")
        return 1 if different else 0
    if not plan_path(root, study).is_file():
        _plan(root, study)
    print(build_report(root=root, study=study, only=only, formats=formats or FORMATS))
    return 0


def _plan(root: Path, study: str) -> None:
    """Write the plan of a study that has not been run: its report then shows what it waits for."""
    from experiments.plan import write_plan
    from experiments.study import plan_study

    write_plan(root, plan_study(study, (), root)[0])


def _names(words: list[str] | None) -> list[str] | None:
    """The names in a flag's words, which may be lists with commas; None without the flag."""
    if words is None:
        return None
    return [name for word in words if "=" not in word for name in word.split(",") if name]
