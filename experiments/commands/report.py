"""Write the tables, figures and report page of a study from its runs, finished or not.

fastrl report study=laptop
fastrl report study=laptop --only table1,figure3 --formats md,tex
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from experiments.commands.arguments import (
    add_words,
    named_study,
    refuse_overrides,
    results_root,
    sorted_words,
)


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, and paths.root=FOLDER when the results lie elsewhere")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these tables and figures, not all of the study"
    )
    parser.add_argument(
        "--formats", nargs="+", metavar="FORMAT", help="of md tex csv html png pdf (default: all)"
    )


def execute(arguments: Namespace) -> int:
    words = sorted_words(arguments.words)
    study = named_study(words)
    refuse_overrides(words, ("paths",), "a report shows the runs of the study's plan")
    from analysis.report import FORMATS, build_report

    root = results_root(words.overrides)
    only, formats = _names(arguments.only), _names(arguments.formats)
    print(build_report(root=root, study=study, only=only, formats=formats or FORMATS))
    return 0


def _names(words: list[str] | None) -> list[str] | None:
    """The names in a flag's words, which may be lists with commas; None without the flag."""
    return None if words is None else [name for word in words for name in word.split(",") if name]
