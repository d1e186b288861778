"""What is measured of a run: one number a run. Tables, figures and claims compare these over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.table import Better

if TYPE_CHECKING:
    from analysis.study import Study


@dataclass(frozen=True)
class Measure:
    """key: name in long CSVs, with the unit. scale: from the record's unit to the printed one.

    timed: whether it is seconds, so that runs on different hardware can't be put together.
    by_run: the measure of every run that has it, in the record's unit.
    needs_all: the mean of an arm means something only when each of its trained runs has the measure (a run
        that never reaches a target is slow, not absent); absent: what runs without it do, for the note.
    """

    key: str
    header: str
    digits: int
    better: Better
    scale: float
    timed: bool
    by_run: Callable[[Study], Mapping[str, float]]
    needs_all: bool = False
    absent: str = ""


WARM_UP_STEPS = 1
"""The first steps of a run, which its mean seconds a step leave out."""

_ROUNDING = 1 - 1e-9
"""Sums of the same seconds in another order agree to within this factor."""


def accuracy(benchmark: str, decoding: str, metric: str = "accuracy") -> Measure:
    """A benchmark's metric under one decoding, in percent."""

    def by_run(study: Study) -> Mapping[str, float]:
        return study.scores(benchmark, decoding, metric)

    name = decoding_name(decoding) if metric == "accuracy" else metric_name(metric)
    suffix = "" if metric == "accuracy" else f"_{metric}"
    return Measure(
        f"{benchmark}_{decoding}{suffix}_percent", name, 1, Better.HIGHER, 100.0, timed=False, by_run=by_run
    )


def mean_accuracy(benchmarks: tuple[str, ...], decoding: str, metric: str = "accuracy") -> Measure:
    """The mean over benchmarks of a metric, in percent; only for runs that have all of them."""

    def by_run(study: Study) -> Mapping[str, float]:
        each = [accuracy(benchmark, decoding, metric).by_run(study) for benchmark in benchmarks]
        complete = set.intersection(*(set(values) for values in each))
        return {run_id: float(np.mean([values[run_id] for values in each])) for run_id in complete}

    suffix = "" if metric == "accuracy" else f"_{metric}"
    return Measure(
        f"mean_of_{len(benchmarks)}_{decoding}{suffix}_percent",
        "Avg" if metric == "accuracy" else metric_name(metric),
        1,
        Better.HIGHER,
        100.0,
        timed=False,
        by_run=by_run,
    )


def out_of_domain(study: Study, metric: str = "accuracy") -> Measure | None:
    """`mean_accuracy` of the out-of-domain benchmarks; None for a study without any."""
    others = study.plan.report.out_of_domain
    return mean_accuracy(others, study.main_decoding(others[0]), metric) if others else None


def training_time(study: Study) -> Measure:
    """Seconds of training on the study's clock: all steps, without validations and checkpoints."""

    def by_run(study: Study) -> Mapping[str, float]:
        totals = study.steps.groupby("run_id")[study.clock.key("step")].agg(lambda own: own.sum(skipna=False))
        return {str(run_id): float(total) for run_id, total in totals.dropna().items()}

    unit = study.clock.unit
    return Measure(f"training_time_{unit}", f"Time ({unit})", 1, Better.LOWER, 1.0, timed=True, by_run=by_run)


def in_hours(time: Measure) -> Measure:
    """A time in hours, of the same clock."""
    header = time.header.replace("CPU-s", "CPU-h").replace("(s)", "(h)")
    digits = 4 if "CPU" in header else 2  # a CPU clock is that of a small study
    return replace(time, key=f"{time.key}_in_hours", header=header, digits=digits, scale=time.scale / 3600)


def stage_time(study: Study, stages: tuple[str, ...], name: str) -> Measure:
    """Mean seconds a step of one or several stages together, on the study's clock.

    The first `WARM_UP_STEPS` of a run are left out: they fill caches and compile. Validation and checkpoints
    are no part of a step's seconds.
    """

    def by_run(study: Study) -> Mapping[str, float]:
        keys = [study.clock.key(stage) for stage in stages]
        warm = study.steps[study.steps["step"] > WARM_UP_STEPS]
        means = warm.groupby("run_id")[keys].mean().sum(axis=1, skipna=False).dropna()
        return {str(run_id): float(mean) for run_id, mean in means.items()}

    unit = study.clock.unit
    return Measure(f"{'+'.join(stages)}_{unit}", name, 4, Better.LOWER, 1.0, timed=True, by_run=by_run)


def first_step_time(study: Study) -> Measure:
    """Seconds of the steps that `stage_time` leaves out."""

    def by_run(study: Study) -> Mapping[str, float]:
        cold = study.steps[study.steps["step"] <= WARM_UP_STEPS]
        means = cold.groupby("run_id")[study.clock.key("step")].mean().dropna()
        return {str(run_id): float(mean) for run_id, mean in means.items()}

    unit = study.clock.unit
    return Measure(f"first_step_{unit}", "first", 3, Better.LOWER, 1.0, timed=True, by_run=by_run)


def total_of_steps(
    study: Study, column: str, header: str, digits: int, scale: float, timed: bool = False
) -> Measure:
    """The sum of a step record's key over all steps of a run that has it at all."""

    def by_run(study: Study) -> Mapping[str, float]:
        if column not in study.steps:
            return {}
        totals = study.steps.groupby("run_id")[column].sum(min_count=1).dropna()
        return {str(run_id): float(total) for run_id, total in totals.items()}

    key = f"total_{column.replace('/', '_')}"
    return Measure(key, header, digits, Better.LOWER, scale, timed=timed, by_run=by_run)


def device_hours(study: Study) -> Measure:
    """What training occupied: hours of wall-clock time times GPUs; without GPUs, hours on a CPU clock."""
    gpus = {run_id: record.gpus for run_id, record in study.records.items() if record.trained}
    on_gpus = any(gpus.values())
    key = "timing_s/step" if on_gpus else "cpu_s/step"

    def by_run(study: Study) -> Mapping[str, float]:
        if key not in study.steps:
            return {}
        totals = study.steps.groupby("run_id")[key].agg(lambda own: own.sum(skipna=False)).dropna()
        shares = {str(run_id): float(total) for run_id, total in totals.items()}
        return {
            run: total * (gpus[run] if on_gpus else 1)
            for run, total in shares.items()
            if gpus[run] or not on_gpus
        }

    unit = "GPU-h" if on_gpus else "CPU-h"
    return Measure(f"training_{unit}", unit, 4, Better.LOWER, 1 / 3600, timed=True, by_run=by_run)


def time_to_accuracy(study: Study, target: float) -> Measure:
    """Seconds of training until validation accuracy first reaches `target`, straight between validations."""

    def by_run(study: Study) -> Mapping[str, float]:
        reached = {}
        for run_id, curve in study.validations.groupby("run_id"):
            seconds = first_crossing(curve["clock"].to_numpy(), curve["accuracy"].to_numpy(), target)
            if seconds is not None and np.isfinite(seconds):
                reached[str(run_id)] = seconds
        return reached

    unit = study.clock.unit
    return Measure(
        f"time_to_{target:g}_{unit}",
        f"to {100 * target:g} % ({unit})",
        1,
        Better.LOWER,
        1.0,
        timed=True,
        by_run=by_run,
        needs_all=True,
        absent=f"never reach {100 * target:g} %",
    )


def accuracy_at_time(study: Study, seconds: float) -> Measure:
    """Validation accuracy after `seconds` of training, in percent, straight between validations."""

    def by_run(study: Study) -> Mapping[str, float]:
        return {
            str(run_id): float(np.interp(seconds, curve["clock"], curve["accuracy"]))
            for run_id, curve in study.validations.groupby("run_id")
            if curve["clock"].iloc[-1] >= seconds * _ROUNDING  # False for a clock that is not known
        }

    unit = study.clock.unit
    return Measure(
        f"validation_at_equal_time_{unit}_percent",
        f"after {seconds:.1f} {unit}",
        1,
        Better.HIGHER,
        100.0,
        timed=True,
        by_run=by_run,
    )


def last_validation(study: Study) -> Measure:
    """Validation accuracy at the end of training, in percent."""

    def by_run(study: Study) -> Mapping[str, float]:
        last = study.validations.groupby("run_id")["accuracy"].last()
        return {str(run_id): float(value) for run_id, value in last.items()}

    return Measure(
        "last_validation_percent", "after all steps", 1, Better.HIGHER, 100.0, timed=False, by_run=by_run
    )


def mean_of_steps(column: str, header: str, digits: int, better: Better = Better.NEITHER) -> Measure:
    """The mean of a step record's key over the steps that have it."""

    def by_run(study: Study) -> Mapping[str, float]:
        if column not in study.steps:
            return {}
        means = study.steps.groupby("run_id")[column].mean().dropna()
        return {str(run_id): float(mean) for run_id, mean in means.items()}

    return Measure(column.replace("/", "_"), header, digits, better, 1.0, timed=False, by_run=by_run)


def last_step(column: str, header: str, digits: int, better: Better = Better.NEITHER) -> Measure:
    """A step record's key at the last step that has it."""

    def by_run(study: Study) -> Mapping[str, float]:
        if column not in study.steps:
            return {}
        last = study.steps.groupby("run_id")[column].last().dropna()
        return {str(run_id): float(value) for run_id, value in last.items()}

    return Measure(
        f"last_{column.replace('/', '_')}", header, digits, better, 1.0, timed=False, by_run=by_run
    )


def setting(path: str, header: str) -> Measure:
    """A number of the resolved config, by its dotted path; runs without it have none."""

    def by_run(study: Study) -> Mapping[str, float]:
        found = {run_id: setting_of(record.config, path) for run_id, record in study.records.items()}
        return {run_id: float(value) for run_id, value in found.items() if isinstance(value, int | float)}

    return Measure(path, header, 0, Better.NEITHER, 1.0, timed=False, by_run=by_run)


def setting_of(config: Mapping[str, object], path: str) -> object:
    """The value at a dotted path of a config, None where there is none."""
    value: object = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def first_crossing(times: np.ndarray, values: np.ndarray, target: float) -> float | None:
    """When a curve of straight pieces first reaches `target`; None when it never does."""
    at = np.flatnonzero(values >= target)
    if len(at) == 0:
        return None
    index = int(at[0])
    if index == 0:
        return float(times[0])
    share = (target - values[index - 1]) / (values[index] - values[index - 1])
    return float(times[index - 1] + share * (times[index] - times[index - 1]))


def decoding_name(decoding: str) -> str:
    """`t0_6` as `T = 0.6`; other names as they are, "accuracy" for none."""
    number = decoding.removeprefix("t").replace("_", ".")
    is_temperature = decoding.startswith("t") and number.replace(".", "").isdigit()
    return f"T = {number}" if is_temperature else decoding or "accuracy"


def metric_name(metric: str) -> str:
    """`avg_at_8` as `avg@8`, `pass_at_4` as `pass@4`; other names as they are."""
    return metric.replace("_at_", "@")
