"""What the tables and figures of studies wait for: runs, prepared data, and one run's numbers for another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.commands.text_table import text_table
from experiments.identity import canonical_json, identity_part
from experiments.plan import Plan
from experiments.run_directory import RunDirectory
from fastrl.schedules.replay import recorded_schedule

Configs = Mapping[str, Mapping[str, Any]]


def waiting_table(plans: Mapping[str, tuple[Plan, Configs]], root: Path) -> str:
    """One line a study: its cells, and what is not there yet. Reads the runs' status, writes nothing."""
    rows = [_row(name, plan, configs, root) for name, (plan, configs) in plans.items()]
    return text_table(["study", "cells", "trained", "waits for"], rows)


def replayed_schedules(configs: Configs, root: Path) -> list[str]:
    """One sentence for each cell that replays another's rollouts and does not have them right, or not yet."""
    sentences = []
    for run, config in configs.items():
        rollouts = config["method"]["rollouts"]
        if rollouts["name"] != "replay":
            continue
        source = _whole_method(config, configs)
        if source is None:
            continue
        steps = RunDirectory(root / "runs" / source)
        if steps.status().get("train") is None or steps.status()["train"].state != "done":
            sentences.append(
                f"{run} replays the rollouts of {source}, which is not trained yet: until then its values "
                "are a stand-in."
            )
            continue
        recorded = list(recorded_schedule(steps.steps_path))
        values = rollouts["values"]
        if [*values, *values[-1:] * len(recorded)][: len(recorded)] != recorded:
            written = str(recorded).replace(" ", "")
            sentences.append(
                f"{run} replays other rollouts than {source} had: write method.rollouts.values={written} "
                "into its study."
            )
    return sentences


def _row(name: str, plan: Plan, configs: Configs, root: Path) -> list[str]:
    trained, evaluations = 0, 0
    for cell in plan.cells:
        status = RunDirectory(root / "runs" / cell.run_id).status()
        done = {stage for stage, entry in status.items() if entry.state == "done"}
        trained += "train" in done
        evaluations += len(set(cell.stages) - done - {"train"})
    waits = []
    only_data = set(plan.report.tables) == {"table6"} and not plan.report.figures
    if trained < len(plan.cells) and not only_data:
        waits.append(_counted(len(plan.cells) - trained, "training"))
    if evaluations and not only_data:
        waits.append(_counted(evaluations, "evaluation"))
    unprepared = _unprepared(configs)
    if unprepared:
        waits.append(f"data: {', '.join(unprepared)}")
    if "figure5" in plan.report.figures:
        waits.append("fastrl correlate")
    return [name, str(len(plan.cells)), str(trained), ", ".join(waits) or "nothing"]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _unprepared(configs: Configs) -> list[str]:
    """Names of the training sets that `fastrl data prepare` has not written yet."""
    from eval.preparation.prepare import read_card

    datasets = {config["dataset"]["name"]: config["dataset"] for config in configs.values()}
    return [
        name for name, each in datasets.items() if "root" in each and read_card(Path(each["root"])) is None
    ]


def _whole_method(config: Mapping[str, Any], configs: Configs) -> str | None:
    """The run of the whole method that differs from a cell in its method alone."""
    for run, other in configs.items():
        if other["method"]["name"] == "fastrl" and _but_method(other) == _but_method(config):
            return run
    return None


def _but_method(config: Mapping[str, Any]) -> str:
    return canonical_json({key: part for key, part in identity_part(config).items() if key != "method"})
