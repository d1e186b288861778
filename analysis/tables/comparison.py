"""Every main method against the baseline: by seeds, by questions, by both, and over all benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from analysis.aggregates import interquartile_estimate, score_matrices
from analysis.comparison import read
from analysis.crossed_bootstrap import PairedComparison
from analysis.measures import accuracy, decoding_name
from analysis.questions import paired_comparisons
from analysis.statistics import LEAST_SEEDS, holm
from analysis.study import Arm, Study
from analysis.table import Better, Column, Form
from analysis.tables.columns import ArmColumn, change_column, renamed
from analysis.tables.spec import ArmTable, interval_note
from analysis.values import NO_RUN, Source, Value, derived, missing

_PERCENT = 100.0


def _columns(study: Study, arms: Sequence[Arm]) -> Sequence[ArmColumn]:
    benchmarks = (study.plan.report.in_domain, *study.plan.report.out_of_domain)
    columns = [column for name in benchmarks for column in _benchmark_columns(study, arms, name)]
    iqm = Column(
        "iqm_change_points", "IQM of change", 1, Better.HIGHER, Form.DIFFERENCE, "All benchmarks (points)"
    )
    found = score_matrices(study, arms)

    def interquartile(arm: Arm) -> Value:
        scores, run_ids = found[arm.id]
        if not run_ids:
            return missing(Source.DERIVED, NO_RUN)
        return derived(interquartile_estimate(scores), run_ids, _PERCENT)

    return (*columns, ArmColumn(iqm, interquartile))


def _benchmark_columns(study: Study, arms: Sequence[Arm], benchmark: str) -> tuple[ArmColumn, ...]:
    decoding = study.main_decoding(benchmark)
    measure = accuracy(benchmark, decoding)
    group = f"{study.benchmark_label(benchmark)}, {decoding_name(decoding)}: change (points)"
    pairs = [(arm, study.baseline_of(arm)) for arm in arms]
    found = paired_comparisons(study, [(arm, base) for arm, base in pairs if arm.id != base.id], benchmark)
    adjusted = _adjusted(found)

    def by_bootstrap(arm: Arm) -> Value:
        if arm.id not in found:
            return missing(Source.DERIVED)
        return read(study, measure).bootstrap_difference(arm, study.baseline_of(arm))

    def of_pair(number: Callable[[Arm, PairedComparison], Value]) -> Callable[[Arm], Value]:
        def value(arm: Arm) -> Value:
            result = found.get(arm.id)
            if result is None:
                return missing(Source.DERIVED)
            if isinstance(result, str):
                return missing(Source.DERIVED, result if _has_runs(study, arm) else NO_RUN)
            return number(arm, result)

        return value

    def over_questions(arm: Arm, result: PairedComparison) -> Value:
        low, high = result.over_questions
        ci = (_PERCENT * low, _PERCENT * high)
        runs = _runs_behind(arm, study.baseline_of(arm))
        return Value(_PERCENT * result.value, result.seeds, ci, Source.DERIVED, runs)

    def p_value(arm: Arm, result: PairedComparison) -> Value:
        if result.p is None:
            return missing(Source.DERIVED, f"a p-value over seeds needs {LEAST_SEEDS} of them")
        runs = _runs_behind(arm, study.baseline_of(arm))
        return Value(adjusted[arm.id], result.seeds, None, Source.DERIVED, runs)

    def column(suffix: str, header: str, digits: int, form: Form) -> Column:
        return Column(f"{measure.key}_change_{suffix}", header, digits, Better.NEITHER, form, group)

    return (
        renamed(change_column(study, measure, "", group), "over seeds, t"),
        ArmColumn(column("bca", "over seeds, BCa", 1, Form.DIFFERENCE), by_bootstrap),
        ArmColumn(column("questions", "over questions", 1, Form.DIFFERENCE), of_pair(over_questions)),
        ArmColumn(column("p_holm", "p (Holm)", 4, Form.NUMBER), of_pair(p_value)),
    )


def _adjusted(found: Mapping[str, PairedComparison | str]) -> dict[str, float]:
    """Holm's p by arm, over the arms that have one."""
    p = {arm: each.p for arm, each in found.items() if not isinstance(each, str) and each.p is not None}
    return dict(zip(p, holm(list(p.values())), strict=True)) if p else {}


def _has_runs(study: Study, arm: Arm) -> bool:
    return any(run in study.records and study.records[run].results for run in arm.runs.values())


def _runs_behind(arm: Arm, against: Arm) -> tuple[str, ...]:
    seeds = [seed for seed in arm.runs if seed in against.runs]
    return tuple(sorted(each.runs[seed] for each in (arm, against) for seed in seeds))


TABLE = ArmTable(
    name="comparison",
    title="Methods compared on the same questions and seeds",
    paper_item="",
    corner="Method",
    arms=lambda study: study.tagged("main"),
    columns=_columns,
    notes=lambda study: (
        interval_note(),
        f"Paired differences to {study.baseline.label}. Over seeds: t and BCa bootstrap interval. Over "
        "questions: bootstrap interval over questions with the seeds fixed, silent on other training runs. "
        "p: paired bootstrap over questions and seeds, two-sided, Holm-corrected for the methods of the "
        "column. Bootstraps over a handful of seeds are too sure: there t is the one to go by.",
        f"IQM: interquartile mean, over runs and benchmarks, of accuracy less {study.baseline.label}'s mean "
        "on the benchmark; bootstrap interval over runs.",
    ),
)
