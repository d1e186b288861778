"""Tidy frames of all runs of a study, from their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.records import RunRecord
from analysis.step_frames import step_keys
from experiments.plan import OWN_TEST, Plan

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Clock:
    """The seconds a study counts. prefix: of the step record's keys. unit: in headers."""

    prefix: str
    unit: str

    def key(self, stage: str) -> str:
        """The step record's key of a stage's seconds."""
        return f"{self.prefix}/{stage}"


CLOCKS = {"cpu": Clock("cpu_s", "CPU-s"), "wall": Clock("timing_s", "s")}
"""By the name that a study has for it."""


def steps_frame(records: Mapping[str, RunRecord], clock: Clock) -> DataFrame:
    """Rows of `Study.steps`."""
    import pandas as pd

    frames = {run_id: record.steps for run_id, record in records.items() if record.steps is not None}
    if not frames:
        empty = {"run_id": "str", **dict.fromkeys((*step_keys(clock.prefix), "clock/total"), "float")}
        return pd.DataFrame(columns=list(empty)).astype(empty)
    frame = pd.concat(frames, names=["run_id", "line"]).reset_index("run_id").reset_index(drop=True)
    frame = frame[frame["step"] > 0].reset_index(drop=True)
    frame["clock/total"] = frame.groupby("run_id", sort=False)[clock.key("step")].cumsum()
    return frame


def validations_frame(records: Mapping[str, RunRecord], clock: Clock) -> DataFrame:
    """Rows of `Study.validations`."""
    import numpy as np
    import pandas as pd

    found: dict[str, list[Any]] = {"run_id": [], "step": [], "accuracy": [], "clock": []}
    for run_id, record in records.items():
        if record.steps is None or "val/accuracy" not in record.steps:
            continue
        step, accuracy = record.steps["step"].to_numpy(), record.steps["val/accuracy"].to_numpy(float)
        own = record.steps[clock.key("step")].to_numpy(float)
        at = ~np.isnan(accuracy)
        found["run_id"] += [run_id] * int(at.sum())
        found["step"].append(step[at])
        found["accuracy"].append(accuracy[at])
        found["clock"].append(np.where(step > 0, own, 0.0).cumsum()[at])
    joined: dict[str, Any] = {
        name: np.concatenate(found[name]) if found[name] else [] for name in ("step", "accuracy", "clock")
    }
    return pd.DataFrame({"run_id": found["run_id"], **joined})


def evaluations_frame(records: Mapping[str, RunRecord], plan: Plan) -> DataFrame:
    """Rows of `Study.evaluations`; where each run's own test set counts, that benchmark's are there twice."""
    import pandas as pd

    own = {cell.run_id: cell.dataset for cell in plan.cells if plan.report.in_domain == OWN_TEST}
    rows = [
        (run_id, called, name, decoding["temperature"], decoding["samples"], metric, float(value))
        for run_id, record in records.items()
        for benchmark, results in record.results.items()
        for called in ([benchmark, OWN_TEST] if own.get(run_id) == benchmark else [benchmark])
        for name, decoding in results["decodings"].items()
        for metric, value in decoding["metrics"].items()
    ]
    columns = ["run_id", "benchmark", "decoding", "temperature", "samples", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)
