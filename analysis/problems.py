"""What a reader must know before trusting a report: runs that are missing, set aside, or doubtful."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from analysis.measures import decoding_name, setting_of
from analysis.study import Study, Unfinished


def problems(study: Study) -> tuple[str, ...]:
    """One sentence a problem; empty when every planned run is whole and beyond doubt."""
    return (
        *_without_baseline(study),
        *_incomplete(study),
        *_set_aside(study),
        *_imported(study),
        *_truncated(study),
        *_uncommitted(study),
    )


def _without_baseline(study: Study) -> list[str]:
    if study.has_baseline:
        return []
    return [
        f'The baseline "{study.plan.baseline}" has no run in this plan; speeds and changes are relative to '
        f"{study.baseline.label} instead."
    ]


def _incomplete(study: Study) -> list[str]:
    """How many runs lack something, then what, by the first stage that is not done and its state."""
    first: dict[str, Unfinished] = {}
    for each in study.unfinished:
        first.setdefault(each.cell.run_id, each)
    missing = len(first.keys() | {each.cell.run_id for each in study.set_aside})
    if not missing:
        return []
    seeds: dict[str, dict[str, list[str]]] = {}
    for each in first.values():
        by_label = seeds.setdefault(f"{each.stage} {each.state}", {})
        by_label.setdefault(each.cell.label, []).append(str(each.cell.seed))
    total = len({cell.run_id for cell in study.plan.cells})
    lines = [f"{missing} of {total} runs missing or incomplete; tables and figures show the rest."]
    for state, by_label in seeds.items():
        arms = "; ".join(f"{label}, seeds {' '.join(found)}" for label, found in by_label.items())
        lines.append(f"{state}: {arms}.")
    return lines


def _set_aside(study: Study) -> list[str]:
    return [
        f"{each.cell.label}, seed {each.cell.seed}: set aside. {each.where}: {each.reason}"
        for each in study.set_aside
    ]


def _imported(study: Study) -> list[str]:
    """Runs that other trainers made, which are measured by their logs alone."""
    trainers = Counter(record.imported for record in study.records.values() if record.imported)
    return [
        f"{count} of {len(study.records)} runs were imported from logs of {trainer}: what a log does not "
        "tell is missing, and its seconds are those that it tells."
        for trainer, count in trainers.items()
    ]


def _truncated(study: Study) -> list[str]:
    """Benchmarks whose responses were cut at the token limit more often than their config tolerates."""
    counts: dict[tuple[str, str], list[float]] = {}
    for record in study.records.values():
        for benchmark, results in record.results.items():
            alarm = setting_of(record.config, f"benchmarks.{benchmark}.truncation_alarm")
            for name, decoding in results["decodings"].items():
                rate = decoding.get("truncation_rate")
                if isinstance(alarm, float) and isinstance(rate, float) and rate > alarm:
                    counts.setdefault((benchmark, name), []).append(rate)
    return [
        f"{study.benchmark_label(benchmark)}, {decoding_name(name)}: in {len(rates)} runs up to "
        f"{100 * max(rates):.1f} % of the responses were cut at the token limit; accuracies may be too low."
        for (benchmark, name), rates in counts.items()
    ]


def _uncommitted(study: Study) -> list[str]:
    """Runs of different commits, or of code with uncommitted changes, told in one sentence each."""
    trained = [record for record in study.records.values() if record.trained]
    commits: Mapping[str, None] = dict.fromkeys(record.commit or "no commit" for record in trained)
    lines = []
    if len(commits) > 1:
        shown = ", ".join(commit[:10] for commit in commits)
        lines.append(f"The runs come from {len(commits)} versions of the code: {shown}.")
    dirty = sum(record.dirty for record in trained)
    if dirty:
        lines.append(f"{dirty} runs were trained with uncommitted changes in the code.")
    return lines
