"""Measures over seeds: an arm's mean, and an arm against another on the seeds that both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.measures import Measure, training_time
from analysis.statistics import bootstrap_mean, mean, paired_difference, paired_ratio
from analysis.study import Arm, Study
from analysis.values import NO_RUN, Source, Value, derived, measured, missing

_BOOTSTRAP_SEED = 0
"""Any fixed number: the same records then give the same interval."""


@dataclass(frozen=True)
class Readings:
    """A measure, read from every run of a study once. by_run: in the record's unit."""

    study: Study
    measure: Measure
    by_run: Mapping[str, float]

    def by_seed(self, arm: Arm) -> dict[int, float]:
        """The arm's values by seed, of the runs that have the measure."""
        return {seed: self.by_run[run_id] for seed, run_id in arm.runs.items() if run_id in self.by_run}

    def scaled(self, arm: Arm) -> list[float]:
        """`by_seed` in the printed unit."""
        return [self.measure.scale * value for value in self.by_seed(arm).values()]

    def speeds(self, arm: Arm, against: Arm) -> list[float]:
        """How many times less the arm takes, by seeds that both have; their times must be positive."""
        ours, theirs = self.by_seed(arm), self.by_seed(against)
        return [theirs[seed] / ours[seed] for seed in ours if seed in theirs]

    def mean(self, arm: Arm) -> Value:
        """The mean over the arm's seeds."""
        values = self.by_seed(arm)
        run_ids = tuple(arm.runs[seed] for seed in values)
        refusal = self._refusal(run_ids, arm)
        if refusal:
            return missing(Source.MEASURED, refusal)
        return measured(mean(list(values.values())), run_ids, self.measure.scale)

    def difference(self, arm: Arm, against: Arm, comparisons: int = 1) -> Value:
        """Mean of `arm - against` over the seeds that both have; comparisons: see `statistics.mean`."""
        seeds, run_ids, refusal = self._paired(arm, against)
        if refusal:
            return missing(Source.DERIVED, refusal)
        ours, theirs = self.by_seed(arm), self.by_seed(against)
        pairs = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
        estimate = paired_difference(*pairs, comparisons)
        return derived(estimate, run_ids, self.measure.scale)

    def bootstrap_difference(self, arm: Arm, against: Arm) -> Value:
        """`difference` with the interval of a paired bootstrap over seeds instead of Student's t."""
        seeds, run_ids, refusal = self._paired(arm, against)
        if refusal:
            return missing(Source.DERIVED, refusal)
        ours, theirs = self.by_seed(arm), self.by_seed(against)
        estimate = bootstrap_mean([ours[seed] - theirs[seed] for seed in seeds], _BOOTSTRAP_SEED)
        return derived(estimate, run_ids, self.measure.scale)

    def speed(self, arm: Arm, against: Arm) -> Value:
        """How many times less the arm takes: geometric mean of `against / arm` over their common seeds."""
        seeds, run_ids, refusal = self._paired(arm, against)
        if refusal:
            return missing(Source.DERIVED, refusal)
        ours, theirs = self.by_seed(arm), self.by_seed(against)
        above, below = [theirs[seed] for seed in seeds], [ours[seed] for seed in seeds]
        if min(*above, *below) <= 0:
            return missing(Source.DERIVED, "no ratio with a time of zero")
        return derived(paired_ratio(above, below), run_ids)

    def _paired(self, arm: Arm, against: Arm) -> tuple[list[int], tuple[str, ...], str]:
        """Common seeds, the runs behind them, and why there is no comparison ("" when there is one)."""
        seeds = [seed for seed in self.by_seed(arm) if seed in self.by_seed(against)]
        run_ids = tuple(dict.fromkeys(each.runs[seed] for each in (arm, against) for seed in seeds))
        if (arm.model, arm.dataset) != (against.model, against.dataset):
            return seeds, run_ids, f"{against.label} has another policy or other training questions"
        if not seeds and self.by_seed(arm) and self.by_seed(against):
            return seeds, run_ids, f"no seed in common with {against.label}"
        return seeds, run_ids, self._refusal(run_ids, arm, against)

    def _refusal(self, run_ids: tuple[str, ...], *arms: Arm) -> str:
        """Why values of these runs can't be put together, "" when they can."""
        measure, records = self.measure, self.study.records
        if measure.needs_all:
            for arm in arms:
                trained = [
                    run_id for run_id in arm.runs.values() if run_id in records and records[run_id].trained
                ]
                without = sum(run_id not in self.by_run for run_id in trained)
                if without:
                    whose = f" of {arm.label}" if len(arms) > 1 else ""
                    return f"{without} of {len(trained)} runs{whose} {measure.absent}"
        if not run_ids:
            return NO_RUN
        if measure.timed:
            hardware = sorted({records[run_id].hardware for run_id in run_ids})
            if "" in hardware:
                return "times on unknown hardware can't be compared"
            if len(hardware) > 1:
                return f"times on different hardware can't be compared: {'; '.join(hardware)}"
        return ""


def read(study: Study, measure: Measure) -> Readings:
    """Read a measure from every run of a study."""
    return Readings(study, measure, measure.by_run(study))


def shortest_training(study: Study, arms: Sequence[Arm]) -> float:
    """Seconds of the shortest training among the arms' runs: the longest time that all of them have."""
    times = read(study, training_time(study))
    return min((value for arm in arms for value in times.by_seed(arm).values()), default=0.0)
