"""A study's runs as tidy frames: everything that tables, figures and claims are computed from.

Only finished stages count: a run enters training measures when its train stage is done, and a benchmark's
measures when that evaluation is done too. A run with a corrupt record enters nothing and is listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.frames import CLOCKS, Clock, evaluations_frame, steps_frame, validations_frame
from analysis.record_error import RecordError
from analysis.records import RunRecord, read_run
from experiments.errors import UserError
from experiments.plan import OWN_TEST, Cell, Plan, plan_path, read_plan

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Arm:
    """The cells that differ only in their seed: a row of a table, a point or a line of a figure."""

    id: str
    label: str
    method: str
    model: str
    dataset: str
    tau: float | None
    groups: tuple[str, ...]
    runs: Mapping[int, str]
    """Run id by seed, in the plan's order."""


@dataclass(frozen=True)
class SetAside:
    """A run whose record can't be trusted. where: file under the results root, and line; reason: why."""

    cell: Cell
    where: str
    reason: str


@dataclass(frozen=True)
class Unfinished:
    """A planned stage without a result, and the state it is in."""

    cell: Cell
    stage: str
    state: str


@dataclass(frozen=True)
class Study:
    """A plan and the records of its runs.

    root: the results folder.
    records: by run id, those that could be read (also of runs in which no stage is done yet).
    steps: one row per training step >= 1 of each trained run: `run_id` and the flat keys of steps.jsonl, and
        `clock/total`, the clock's seconds since the start of training.
    validations: run_id, step, accuracy (fraction), clock (seconds of training until then); step 0 included.
    evaluations: run_id, benchmark, decoding, temperature, samples, metric, value; one row per number.
    """

    root: Path
    plan: Plan
    clock: Clock
    arms: tuple[Arm, ...]
    records: Mapping[str, RunRecord]
    steps: DataFrame
    validations: DataFrame
    evaluations: DataFrame
    set_aside: tuple[SetAside, ...]
    unfinished: tuple[Unfinished, ...]

    @cached_property
    def trained(self) -> frozenset[str]:
        """The ids of the runs whose training is done."""
        return frozenset(run_id for run_id, record in self.records.items() if record.trained)

    @property
    def has_baseline(self) -> bool:
        """False when the plan's baseline is no arm of it, as when a study is run with method=fastrl alone."""
        return bool(self._named_baseline)

    @cached_property
    def baseline(self) -> Arm:
        """The arm that speeds and differences are relative to: by label, else the first of that method.

        Without one (`has_baseline`) the first arm stands in; the report says so.
        """
        return [*self._named_baseline, *self.arms][0]

    @cached_property
    def _named_baseline(self) -> list[Arm]:
        name = self.plan.baseline
        by_label = [arm for arm in self.arms if arm.label == name]
        return by_label or [arm for arm in self.arms if arm.method == name]

    @cached_property
    def _baselines(self) -> Mapping[tuple[str, str], Arm]:
        """By policy and training questions, where one was trained on them."""
        alike = [arm for arm in self.arms if arm.method == self.baseline.method]
        found: dict[tuple[str, str], Arm] = {}
        for arm in (*self._named_baseline, *alike):
            found.setdefault((arm.model, arm.dataset), arm)
        return found

    def baseline_of(self, arm: Arm) -> Arm:
        """The baseline with the arm's own policy and training questions, where the study has one."""
        return self._baselines.get((arm.model, arm.dataset), self.baseline)

    def tagged(self, *groups: str) -> tuple[Arm, ...]:
        """Arms that carry one of the group tags, in the plan's order."""
        return tuple(arm for arm in self.arms if set(groups) & set(arm.groups))

    def main_arm(self, method: str) -> Arm | None:
        """The arm of the main comparison that uses a method, None when the study has none."""
        return next((arm for arm in self.tagged("main") if arm.method == method), None)

    @property
    def tau_arms(self) -> tuple[Arm, ...]:
        """The arms of the threshold sweep by τ: those tagged "tau", and the main arm of the same method.

        One without a τ, as an override of the method leaves it, is none of them.
        """
        swept = self.tagged("tau")
        methods = {arm.method for arm in swept}
        arms = {
            arm.id: (arm.tau, arm)
            for arm in (*swept, *self.tagged("main"))
            if arm.method in methods and arm.tau is not None
        }
        return tuple(arm for _, arm in sorted(arms.values(), key=lambda pair: pair[0]))

    @cached_property
    def _scores(self) -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]:
        """Values by benchmark, decoding (by temperature), metric and run, as the records order them."""
        named = self.evaluations.sort_values(["temperature", "decoding"], kind="stable")
        scores: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
        columns = (named[name].tolist() for name in ("benchmark", "decoding", "metric", "run_id", "value"))
        for benchmark, decoding, metric, run_id, value in zip(*columns, strict=True):
            metrics = scores.setdefault(benchmark, {}).setdefault(decoding, {})
            metrics.setdefault(metric, {})[run_id] = value
        return scores

    def decodings(self, benchmark: str) -> tuple[str, ...]:
        """Names of the decodings that a benchmark was evaluated with, by temperature."""
        return tuple(self._scores.get(benchmark, {}))

    def main_decoding(self, benchmark: str) -> str:
        """The decoding of a benchmark's one-column accuracies: the hottest, "" before any evaluation."""
        return ("", *self.decodings(benchmark))[-1]

    def metrics(self, benchmark: str, decoding: str) -> tuple[str, ...]:
        """Names of a benchmark's metrics under one decoding, as the records order them."""
        return tuple(self._scores.get(benchmark, {}).get(decoding, {}))

    def scores(self, benchmark: str, decoding: str, metric: str) -> Mapping[str, float]:
        """A benchmark's metric under one decoding by run id, as a fraction."""
        return self._scores.get(benchmark, {}).get(decoding, {}).get(metric, {})

    def benchmark_label(self, benchmark: str) -> str:
        """A benchmark's name for headers, as the runs' configs have it."""
        if benchmark == OWN_TEST:
            return "Own test set"
        for record in self.records.values():
            label = record.config.get("benchmarks", {}).get(benchmark, {}).get("label")
            if label:
                return str(label)
        return benchmark


def load_study(root: Path, name: str) -> Study:
    """Read the plan `<root>/studies/<name>/plan.json` and the runs that it names.

    Raises UserError for a plan that is missing, wrong or empty; a run's corrupt record sets that run aside.
    """
    plan = _printable_plan(read_plan(root, name))
    if plan.clock not in CLOCKS:
        raise UserError(
            f'There is no clock "{plan.clock}".',
            "plan.json, clock",
            f"set clock in the study's YAML to one of: {', '.join(CLOCKS)}",
        )
    if not plan.cells:
        raise UserError(
            f'The study "{name}" has no cells.',
            str(plan_path(root, name)),
            f"give it some and run it: fastrl run study={name}",
        )
    clock = CLOCKS[plan.clock]
    records: dict[str, RunRecord] = {}
    set_aside: list[SetAside] = []
    for cell in plan.cells:
        try:
            records[cell.run_id] = read_run(root, cell, clock.prefix)
        except RecordError as error:
            set_aside.append(SetAside(cell, error.where, error.reason))
    for odd in _differently_evaluated(plan, records):
        records.pop(odd.cell.run_id, None)
        set_aside.append(odd)
    return Study(
        root=root,
        plan=plan,
        clock=clock,
        arms=_arms(plan),
        records=records,
        steps=steps_frame(records, clock),
        validations=validations_frame(records, clock),
        evaluations=evaluations_frame(records, plan),
        set_aside=tuple(set_aside),
        unfinished=tuple(
            Unfinished(cell, stage, records[cell.run_id].states[stage])
            for cell in plan.cells
            if cell.run_id in records
            for stage in cell.stages
            if records[cell.run_id].states[stage] != "done"
        ),
    )


def printable(text: str) -> str:
    """A name without control characters, which could move a terminal's cursor or turn a line around."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _printable_plan(plan: Plan) -> Plan:
    """The plan with its title and labels as they may be shown."""
    cells = tuple(replace(cell, label=printable(cell.label)) for cell in plan.cells)
    return replace(plan, title=printable(plan.title), baseline=printable(plan.baseline), cells=cells)


def _arms(plan: Plan) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            id=arm,
            label=cells[0].label,
            method=cells[0].method,
            model=cells[0].model,
            dataset=cells[0].dataset,
            tau=cells[0].tau,
            groups=tuple(dict.fromkeys(group for cell in cells for group in cell.groups)),
            runs={cell.seed: cell.run_id for cell in cells},
        )
        for arm, cells in plan.arms.items()
    )


def _differently_evaluated(plan: Plan, records: Mapping[str, RunRecord]) -> Iterator[SetAside]:
    """Runs that were evaluated under settings, data, prompt or extractor other than most runs' were."""
    by_benchmark: dict[str, dict[str, str]] = {}
    for run_id, record in records.items():
        for benchmark, results in record.results.items():
            by_benchmark.setdefault(benchmark, {})[run_id] = _evaluation_digest(results)
    for benchmark, digests in by_benchmark.items():
        counted = Counter(digests.values())
        usual = min(counted, key=lambda digest: (-counted[digest], digest))
        for cell in plan.cells:
            digest = digests.get(cell.run_id, usual)
            if digest != usual:
                reason = (
                    f"evaluated with {digest}, while {counted[usual]} other runs were with {usual}; "
                    f"run the stage evaluate-{benchmark} again"
                )
                yield SetAside(cell, f"runs/{cell.run_id}/eval/{benchmark}/results.json", reason)


def _evaluation_digest(results: Mapping[str, Any]) -> str:
    """Everything that makes two accuracies comparable, as short words; the checkpoint differs, of course."""
    digests = {"settings": results.get("settings_digest"), **results.get("digests", {})}
    digests.pop("checkpoint", None)
    return ", ".join(f"{name} {str(digests[name])[:10]}" for name in sorted(digests))
