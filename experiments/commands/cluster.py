"""Start or stop a small real Slurm cluster on this one machine, to rehearse a study on.

  fastrl cluster up         two virtual nodes; installs Debian's Slurm packages when run as root
  fastrl cluster env        what a shell needs: eval "$(fastrl cluster env)"
  fastrl cluster down       stops its jobs and daemons

Then: fastrl submit study=smoke cluster=minislurm
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("up", "env", "down"))
    parser.add_argument("--folder", type=Path, help="where it lives (default: ~/.cache/minislurm)")
    parser.add_argument("--purge", action="store_true", help="with down: delete the folder, too")


def execute(arguments: Namespace) -> int:
    from slurm.minislurm.control import DEFAULT_FOLDER, environment, start, stop

    folder = arguments.folder or DEFAULT_FOLDER
    if arguments.action == "down":
        stop(folder, purge=arguments.purge)
        return 0
    if arguments.action == "up":
        start(folder)
    print(f"export SLURM_CONF={environment(folder)['SLURM_CONF']}")
    if arguments.action == "up":
        print('# in your shell: eval "$(fastrl cluster env)"', flush=True)
    return 0
