"""The command line: `fastrl COMMAND [key=value ...] [flags]`.

A command's module is imported when it is called, so that `fastrl --help` needs the standard library alone.
"""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
import sys
from collections.abc import Sequence

from experiments.errors import UserError, did_you_mean, listed
from fastrl import __version__

COMMANDS = {
    "run": "plan a study, run its cells on this machine, then report and track them",
    "plan": "list the cells of a study, running nothing",
    "submit": "plan a study and send its cells to a Slurm cluster; returns at once",
    "status": "show how far each cell of a study is",
    "logs": "show, or follow, what a run's stages print",
    "cancel": "take a study's or a run's jobs out of the cluster",
    "doctor": "check this machine and a cluster: what works, what doesn't, and the way out",
    "cluster": "start or stop a small real Slurm cluster on this machine, to rehearse on",
    "evaluate": "score a checkpoint, a server or recorded outputs on benchmarks",
    "report": "write the tables, figures and report page of a study from its runs",
    "track": "bring the runs of a study into MLflow; `track ui` opens MLflow's pages",
    "compare": "print and plot a metric of tracked runs by method, threshold or another tag",
    "import": "turn logs of runs made with EasyR1, TRL or verl into runs of a study",
    "replay": "predict from recorded rollouts what methods keep, sample and cost, without training",
    "correlate": "compare token similarity with the similarity of policy gradients (Figure 5)",
    "data": "prepare a training set: parquet files for training and a data card",
    "score": "score recorded outputs of a public benchmark by its official protocol",
    "show": "print the resolved configuration of a cell or a run",
}
"""Summary of each command; its module is `experiments.commands.<name>` (`import_` for import)."""

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for failed work, 2 for wrong usage, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0].startswith("-"):
        _top_parser().parse_args(words or ["--help"])
    debug = "--debug" in words
    try:
        return _run_command(words[0], words[1:])
    except UserError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, say `head`, has left; nothing more can be written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if debug:
            raise
        print(
            f"error: {error.strerror or error}\n  where: {error.filename or 'unknown file'}", file=sys.stderr
        )
        return 1


def _run_command(name: str, words: Sequence[str]) -> int:
    if name not in COMMANDS:
        raise UserError(
            f'There is no command "{name}".',
            "",
            f"{did_you_mean(name, COMMANDS)}commands: {listed(COMMANDS)}",
        )
    module = f"{name}_" if keyword.iskeyword(name) else name
    command = importlib.import_module(f"experiments.commands.{module}")
    parser = argparse.ArgumentParser(
        prog=f"fastrl {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show a traceback with an error")
    code: int = command.execute(parser.parse_intermixed_args(list(words)))
    return code


def _top_parser() -> argparse.ArgumentParser:
    width = max(len(name) for name in COMMANDS)
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="fastrl",
        usage="fastrl COMMAND [key=value ...] [flags]",
        description="Run, reproduce and extend FastRL: studies of GRPO-type methods, from configs to tables.",
        epilog=f"commands:\n{commands}\n\nexample: fastrl run study=laptop\nmore:    fastrl COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fastrl {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
