"""Take the jobs of a study, or of one run, out of the cluster; stages that run save what they have first.

  fastrl cancel study=table1
  fastrl cancel RUN              a run id or its beginning, as far as it is unique

`fastrl submit` sends them again, and they go on from where they were.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from experiments.commands.arguments import add_words, refuse_overrides, results_root, sorted_words
from experiments.commands.run_names import named_run
from experiments.errors import UserError


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME or a run id, and paths.root=FOLDER when the results lie elsewhere")


def execute(arguments: Namespace) -> int:
    from slurm.cancel import cancel

    words = sorted_words(arguments.words, bare=True)
    refuse_overrides(words, ("paths",), "jobs are cancelled by study or run")
    root = results_root(words.overrides).resolve()
    if words.study and not words.bare:
        cancelled = cancel(root, lambda submission, run_id, stage: submission.study == words.study)
    elif len(words.bare) == 1 and not words.study:
        run = named_run(root, words.bare[0])
        cancelled = cancel(root, lambda submission, run_id, stage: run_id == run.run_id)
    else:
        raise UserError(
            "Nothing, or more than one thing, is named.", "command line", "name study=NAME or one run id"
        )
    print(f"{len(cancelled)} jobs cancelled" + (f": {', '.join(map(str, cancelled))}" if cancelled else ""))
    return 0
