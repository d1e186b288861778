"""Compare tracked runs: the last value of a metric, averaged over the runs with the same tags.

  fastrl compare study=laptop metric=eval/laptop_figures/t1/accuracy by=method,tau
  fastrl compare study=laptop metric=actor/entropy by=label --plot entropy.png

Tags: method, model, dataset, seed, tau, engine, label, group, arm, git_commit. Track the study first.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from experiments.commands.arguments import add_words, refuse_overrides, results_root, sorted_words
from experiments.errors import UserError

_OWN = ("metric", "by")
_PLOT_FORMATS = ("png", "pdf", "svg")


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME metric=NAME by=TAG,TAG (default: label), tracking settings, paths.root")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it too, as png, pdf or svg")


def execute(arguments: Namespace) -> int:
    own = {word.partition("=")[0]: word.partition("=")[2] for word in arguments.words if _is_own(word)}
    words = sorted_words([word for word in arguments.words if not _is_own(word)])
    refuse_overrides(words, ("paths", "tracking"), "comparing shows runs as they are")
    if not words.study or not own.get("metric"):
        raise UserError(
            "A comparison needs a study and a metric.",
            "command line",
            "for example study=laptop metric=eval/laptop_figures/t1/accuracy by=label",
        )
    plot_format = arguments.plot.suffix.removeprefix(".") if arguments.plot else ""
    if arguments.plot and plot_format not in _PLOT_FORMATS:
        raise UserError(
            f'A plot can\'t be written as "{plot_format}".', str(arguments.plot), "end in .png, .pdf or .svg"
        )
    from analysis.tracking.compare import compare_runs, comparison_figure, comparison_rows
    from analysis.tracking.store import default_uri
    from experiments.atomic_files import write_file
    from experiments.commands.text_table import text_table

    uri = _server(words.overrides) or default_uri(results_root(words.overrides))
    by = [name for name in own.get("by", "label").split(",") if name]
    comparison = compare_runs(uri, words.study, own["metric"], by)
    print(text_table(*comparison_rows(comparison)))
    if arguments.plot:
        write_file(arguments.plot, comparison_figure(comparison, (plot_format,))[plot_format])
        print(f"\nwritten: {arguments.plot}")
    return 0


def _is_own(word: str) -> bool:
    key, equals, _ = word.partition("=")
    return bool(equals) and key in _OWN


def _server(overrides: tuple[str, ...]) -> str | None:
    """The tracking URI that the words name, None for the results folder's own store."""
    uris = [word.partition("=")[2] for word in overrides if word.startswith("tracking.uri=")]
    return uris[-1].strip("'\"") if uris else None
