"""Bring the runs of a study, or of all studies, into MLflow; doing it again adds only what is new.

fastrl track study=laptop
fastrl track
fastrl track study=laptop tracking=server tracking.uri=http://host:5000
fastrl track ui --port 5000
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.commands.arguments import Words, add_words, refuse_overrides, results_root, sorted_words
from experiments.errors import UserError
from experiments.plan import plan_path


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME (default: every study), tracking settings, paths.root; or ui")
    parser.add_argument("--host", default="127.0.0.1", help="of the ui (default: this machine alone)")
    parser.add_argument("--port", type=int, default=5000, help="of the ui (default: 5000)")


def execute(arguments: Namespace) -> int:
    words = sorted_words(arguments.words, bare=True)
    refuse_overrides(words, ("paths", "tracking"), "tracking shows runs as they are")
    if words.bare not in ((), ("ui",)):
        raise UserError(f'"{words.bare[0]}" is not understood.', "command line", "write study=NAME, or ui")
    root = results_root(words.overrides)
    if words.bare == ("ui",):
        from analysis.tracking.ui import serve

        return serve(root, arguments.host, arguments.port)
    studies, tracking = _studies(words, root), _tracking(words)
    from analysis.tracking.sync import sync_study

    for study in studies:
        print(sync_study(root, study, tracking["uri"]))
    return 0


def _studies(words: Words, root: Path) -> list[str]:
    names = (
        [words.study]
        if words.study
        else sorted(path.parent.name for path in root.glob("studies/*/plan.json"))
    )
    if not names:
        where = str(root / "studies")
        raise UserError("There is no study to track.", where, "run one first: fastrl run study=laptop")
    for name in names:
        if not plan_path(root, name).is_file():
            path = str(plan_path(root, name))
            raise UserError(
                f'There is no plan of the study "{name}".', path, f"run it first: fastrl run study={name}"
            )
    return names


def _tracking(words: Words) -> Mapping[str, Any]:
    from experiments.compose import compose_cell

    tracking: Mapping[str, Any] = compose_cell(words.overrides)["tracking"]
    if tracking["name"] == "none":
        raise UserError(
            "tracking=none tracks nothing.", "command line", "leave it out, or name another tracking"
        )
    return tracking
