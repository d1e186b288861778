"""Check this machine, and a cluster when one is named: what works, what doesn't, and the way out.

  fastrl doctor
  fastrl doctor cluster=my_site paths.root=/shared/results

The exit code is 1 when something would keep a study from running.
"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from experiments.commands.arguments import add_config_folders, add_words, sorted_words


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "cluster=NAME, paths.root=FOLDER, and other overrides")
    add_config_folders(parser)


def execute(arguments: Namespace) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from experiments.cluster_settings import ClusterSettings, Pythons
    from experiments.compose import compose_cell
    from experiments.schema import build_settings
    from slurm.doctor.check import exit_code
    from slurm.doctor.machine import machine_checks, python_checks
    from slurm.doctor.services import service_checks
    from slurm.doctor.site import site_checks
    from slurm.doctor.storage import storage_checks

    words = sorted_words(arguments.words)
    config = compose_cell(words.overrides, arguments.config_dir)
    cluster, _ = build_settings(ClusterSettings, config["cluster"])
    assert cluster is not None, "a composed config has been checked"
    site = cluster.slurm
    checks = [
        *machine_checks(),
        *python_checks(
            site.python if site else Pythons(None, None, None), site.shapes.train.nodes if site else 1
        ),
        *storage_checks(Path(config["paths"]["root"]).resolve(), site.shared_paths if site else ()),
        *service_checks(config["tracking"]),
        *(site_checks(site) if site else ()),
    ]
    width = None if sys.stdout.isatty() else max(160, shutil.get_terminal_size().columns)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "check", "found", "way out"):
        table.add_column(heading, overflow="fold")
    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    for check in checks:
        table.add_row(
            Text(check.level, styles[check.level]), *map(Text, (check.name, check.found, check.way_out))
        )
    Console(width=width).print(table)
    return exit_code(checks)
