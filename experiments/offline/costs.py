"""Costs of the stages of a step: measured by runs of ours, or a named profile of `conf/replay/profile/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from experiments.errors import UserError, did_you_mean, listed
from experiments.run_directory import RunDirectory
from fastrl.replay.costs import CostError, StageCosts, fit_costs

_FOLDER = Path(__file__).parents[1] / "conf" / "replay" / "profile"
_PREFIX: dict[str, Literal["timing_s", "cpu_s"]] = {"cpu": "cpu_s", "wall": "timing_s"}


@dataclass(frozen=True)
class CostProfile:
    """Published costs of a step of `questions` groups with `rollouts` trajectories each.

    model: whose policy, a name of `conf/model`. gpus: how many the step took.
    """

    questions: int
    rollouts: int
    costs: StageCosts
    model: str
    gpus: int


def named_profile(name: str) -> CostProfile:
    """A profile by name. Raises UserError when there is none."""
    names = sorted(path.stem for path in _FOLDER.glob("*.yaml"))
    if name not in names:
        raise UserError(
            f'There is no cost profile "{name}".',
            "--profile",
            f"{did_you_mean(name, names)}profiles: {listed(names)}",
        )
    profile = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    trajectories = profile["questions"] * profile["rollouts"]
    stages = {
        stage: {entry["grows_with"]: entry["seconds"] / trajectories}
        for stage, entry in profile["stages"].items()
    }
    costs = StageCosts(profile["name"], profile["source"], profile["unit"], profile["note"], stages)
    return CostProfile(profile["questions"], profile["rollouts"], costs, profile["model"], profile["gpus"])


def measured_costs(runs: Sequence[RunDirectory], clock: str) -> StageCosts:
    """Costs from the step logs of runs on one machine. clock: "cpu" or "wall" seconds. Raises UserError."""
    logs = [run.steps() for run in runs]
    try:
        return fit_costs(
            " + ".join(run.run_id for run in runs), logs, _PREFIX[clock], [_longest(run) for run in runs]
        )
    except CostError as error:
        where = ", ".join(str(run.steps_path) for run in runs)
        raise UserError(
            f"No costs can be read: {error}.", where, "name finished runs with --costs, or a --profile", 1
        ) from None


def _longest(run: RunDirectory) -> Mapping[int, int]:
    """The longest response of each recorded step."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    lengths: dict[int, int] = {}
    for path in run.rollouts.glob("step_*.parquet"):
        table: Any = pq.read_table(path, columns=["tokens"])
        longest = pc.max(pc.list_value_length(table["tokens"])).as_py()
        lengths[int(path.stem.removeprefix("step_"))] = int(longest or 0)
    return lengths
