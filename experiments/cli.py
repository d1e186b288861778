"""The command line: `fastrl COMMAND [key=value ...] [flags]`.

A command's module is imported when it is called, so that `fastrl --help` needs the standard library alone.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from experiments.errors import UserError, did_you_mean, listed
from fastrl import __version__

COMMANDS = {
    "run": "plan a study, run its cells on this machine, then report and track them",
    "plan": "list the cells of a study, running nothing",
    "status": "show how far each cell of a study is",
    "report": "write the tables, figures and report page of a study from its runs",
    "track": "bring the runs of a study into MLflow; `track ui` opens MLflow's pages",
    "show": "print the resolved configuration of a cell or a run",
}
"""Summary of each command; its module is `experiments.commands.<name>`."""

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
    command = importlib.import_module(f"experiments.commands.{name}")
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
