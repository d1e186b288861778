"""A study of counting cells, and a driver for it: `python counting_study.py ROOT '{"arms": 2, ...}'`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

from counting_stage import STAGES, counting_config
from rich.console import Console

from experiments.identity import arm_id, run_id
from experiments.local.driver import Work, run_study
from experiments.local.outcome import StudyOutcome
from experiments.plan import Cell, Plan, ReportSettings

COUNTING = Work(STAGES, preloaded=("counting_study",), prepares=False)


def counting_cell(config: dict[str, Any]) -> Cell:
    method = config["method"]["name"]
    return Cell(
        run_id=run_id(config),
        arm=arm_id(config),
        label=method,
        group="main",
        groups=("main",),
        seed=config["seed"],
        method=method,
        model="counter",
        dataset="laptop_geometry",
        engine="counting",
        tau=None,
        overrides=(),
        stages=("train", *(f"evaluate-{name}" for name in config["benchmarks"])),
    )


def counting_plan(configs: list[dict[str, Any]]) -> Plan:
    report = ReportSettings((), (), "geometry", (), 0.8)
    return Plan("counting", "Counting", "a", "cpu", None, 0.0, tuple(map(counting_cell, configs)), report)


def study_configs(arms: int, seeds: int, **training: Any) -> list[dict[str, Any]]:
    return [
        counting_config(seed, "abcdefgh"[arm], **training) for arm in range(arms) for seed in range(seeds)
    ]


def run_counting_study(
    root: Path, configs: list[dict[str, Any]], workers: int = 2, wait_for_others: float = 0.2
) -> tuple[StudyOutcome, str]:
    """Run the study in this process; the outcome and what was printed."""
    output = io.StringIO()
    console = Console(file=output, width=200)
    by_id = {run_id(config): config for config in configs}
    plan = counting_plan(configs)
    outcome = run_study(plan, by_id, root, workers, console, COUNTING, wait_for_others)
    return outcome, output.getvalue()


if __name__ == "__main__":
    study_outcome, printed = run_counting_study(Path(sys.argv[1]), study_configs(**json.loads(sys.argv[2])))
    print(printed)
    sys.exit(study_outcome.exit_code)
