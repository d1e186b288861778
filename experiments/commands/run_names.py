"""A run by what a person types of its id."""

from __future__ import annotations

from pathlib import Path

from experiments.errors import UserError, did_you_mean
from experiments.run_directory import RunDirectory


def named_run(root: Path, name: str) -> RunDirectory:
    """The run under a results root whose id is `name` or, as the only one, begins so. Raises UserError."""
    runs = root / "runs"
    known = sorted(path.name for path in runs.glob("*"))
    found = [name] if name in known else [each for each in known if each.startswith(name)]
    if len(found) == 1:
        return RunDirectory(runs / found[0])
    raise UserError(
        f'{len(found)} runs begin with "{name}".' if found else f'No run is called "{name}".',
        str(runs),
        f"{did_you_mean(name, [] if found else known)}fastrl status study=NAME --json shows the run ids; "
        "another results folder is named with paths.root=FOLDER",
    )
