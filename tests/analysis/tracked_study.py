"""Small studies to track, and MLflow's own view of them."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from pathlib import Path
from typing import Any

from synthetic_study import FASTRL, GRPO

from analysis.tracking.names import PARENT_TAG
from analysis.tracking.store import default_uri, open_client
from experiments.plan import Plan
from experiments.run_directory import RunDirectory

ONE_RUN = (dataclasses.replace(GRPO, seeds=1),)
TWO_RUNS = (dataclasses.replace(GRPO, seeds=1), dataclasses.replace(FASTRL, seeds=1))


def only_run(root: Path, plan: Plan) -> RunDirectory:
    return RunDirectory(root / "runs" / plan.cells[0].run_id)


def tracked_runs(root: Path, study: str = "laptop") -> dict[str, Any]:
    """MLflow's own view of a study's runs, by name."""
    client = open_client(default_uri(root))
    experiment = client.get_experiment_by_name(study)
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return {run.info.run_name: run for run in runs if PARENT_TAG in run.data.tags}


def history(root: Path, run: Any, metric: str) -> list[tuple[int, float]]:
    """Every value that MLflow has of a metric, with its step, in the order of steps."""
    values = open_client(default_uri(root)).get_metric_history(run.info.run_id, metric)
    return sorted((value.step, value.value) for value in values)


def rows(root: Path) -> dict[str, list[Any]]:
    """The content of the tables that a sync writes to."""
    with sqlite3.connect(root / "tracking" / "mlflow.db") as connection:
        return {
            table: sorted(connection.execute(f"select * from {table}").fetchall(), key=repr)
            for table in ("runs", "metrics", "latest_metrics", "params", "tags", "experiments")
        }


def forget_last_sync(root: Path) -> None:
    (root / "tracking" / "laptop.digest").unlink()


def write_states(run: RunDirectory, states: dict[str, str | None]) -> None:
    """Give the stages other states; None: never tried."""
    entries = json.loads(run.status_path.read_text())
    for stage, state in states.items():
        if state is None:
            del entries[stage]
        else:
            entries[stage]["state"] = state
    run.status_path.write_text(json.dumps(entries))
