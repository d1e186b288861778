"""Claims on accuracy: in and out of domain, at equal steps and time, with one and several responses."""

from __future__ import annotations

from analysis.claims.claim import Claim, Verdict, above, below, in_points, not_tested, paper_says
from analysis.comparison import read, shortest_training
from analysis.measures import Measure, accuracy, accuracy_at_time, decoding_name, mean_accuracy, metric_name
from analysis.study import Arm, Study
from analysis.values import Value

_WORDS = {
    Verdict.HOLDS: "higher",
    Verdict.FAILS: "lower",
    Verdict.OPEN: "not distinguishable",
    Verdict.NOT_TESTED: "not tested",
}


def higher_at_equal_steps(study: Study) -> Claim:
    """In-domain accuracy after the same number of steps, under every decoding; the hottest decides."""
    key = "higher_at_equal_steps"
    statement = f"FastRL is more accurate than {study.baseline.label} after the same number of steps."
    reported = paper_says("abstract", "fastrl", "accuracy_gain")
    arm, benchmark = study.main_arm("fastrl"), study.plan.report.in_domain
    decodings = study.decodings(benchmark)
    if arm is None or not decodings:
        return not_tested(key, statement, "The study has no evaluated FastRL.", reported)
    values: list[tuple[str, Value]] = []
    found = []
    for decoding in reversed(decodings):
        name = decoding_name(decoding)
        readings = read(study, accuracy(benchmark, decoding))
        by_t = readings.difference(arm, study.baseline)
        by_bootstrap = readings.bootstrap_difference(arm, study.baseline)
        values += [(name, by_t), (f"{name}, bootstrap", by_bootstrap)]
        parts = (f"{in_points(by_t)}{_bootstrap_words(by_bootstrap)}", _WORDS.get(above(by_t, 0), ""))
        found.append(f"{name}: {', '.join(filter(None, parts))}")
    finding = f"Paired difference over seeds; {'; '.join(found)}."
    return Claim(key, statement, above(values[0][1], 0), finding, reported, tuple(values))


def higher_out_of_domain(study: Study) -> Claim:
    """The mean accuracy over the out-of-domain benchmarks."""
    key = "higher_out_of_domain"
    statement = f"FastRL is more accurate than {study.baseline.label} out of domain."
    reported = paper_says("table1", "fastrl", "out_of_domain_gain")
    arm, others = study.main_arm("fastrl"), study.plan.report.out_of_domain
    if arm is None or not others:
        return not_tested(key, statement, "The study has no FastRL evaluated out of domain.", reported)
    decoding = study.main_decoding(others[0])
    measure = mean_accuracy(others, decoding)
    return _difference(study, key, statement, reported, measure, arm, decoding_name(decoding))


def higher_at_equal_time(study: Study) -> Claim:
    """Validation accuracy when the shortest run of the two ends."""
    key = "higher_at_equal_time"
    statement = f"FastRL is more accurate than {study.baseline.label} after the same training time."
    arm = study.main_arm("fastrl")
    if arm is None:
        return not_tested(key, statement, "The study has no FastRL among its main methods.")
    seconds = shortest_training(study, (arm, study.baseline))
    if not seconds:
        return not_tested(key, statement, "No training of both is finished.")
    measure = accuracy_at_time(study, seconds)
    return _difference(study, key, statement, "", measure, arm, f"Validation {measure.header}")


def more_solved_by_several(study: Study) -> Claim:
    """Out-of-domain pass@k with the largest k."""
    key = "more_solved_by_several"
    statement = f"With several responses FastRL solves more than {study.baseline.label} out of domain."
    reported = f"avg@16: {paper_says('table4', 'fastrl', 'avg_at_16_gain')}"
    arm, others = study.main_arm("fastrl"), study.plan.report.out_of_domain
    if arm is None or not others:
        return not_tested(key, statement, "The study has no FastRL evaluated out of domain.", reported)
    decoding = study.main_decoding(others[0])
    passes = [name for name in study.metrics(others[0], decoding) if name.startswith("pass_at_")]
    if not passes:
        return not_tested(key, statement, "The study has no pass@k out of domain.", reported)
    metric = passes[-1]
    measure = accuracy(others[0], decoding, metric)
    return _difference(study, key, statement, reported, measure, arm, metric_name(metric))


def cppo_loses_accuracy(study: Study) -> Claim:
    """CPPO's out-of-domain accuracy against the baseline's."""
    key = "cppo_loses_accuracy"
    statement = f"CPPO loses accuracy against {study.baseline.label} out of domain."
    reported = paper_says("table1", "cppo", "out_of_domain_gain")
    arm, others = study.main_arm("cppo"), study.plan.report.out_of_domain
    if arm is None or not others:
        return not_tested(key, statement, "The study has no CPPO evaluated out of domain.", reported)
    value = read(study, mean_accuracy(others, study.main_decoding(others[0]))).difference(arm, study.baseline)
    finding = f"Paired difference {in_points(value)}."
    return Claim(key, statement, below(value, 0), finding, reported, (("difference", value),))


def _difference(
    study: Study, key: str, statement: str, reported: str, measure: Measure, arm: Arm, name: str
) -> Claim:
    readings = read(study, measure)
    by_t = readings.difference(arm, study.baseline)
    by_bootstrap = readings.bootstrap_difference(arm, study.baseline)
    finding = f"{name}: paired difference {in_points(by_t)}{_bootstrap_words(by_bootstrap)}."
    values = (("difference", by_t), ("difference, bootstrap", by_bootstrap))
    return Claim(key, statement, above(by_t, 0), finding, reported, values)


def _bootstrap_words(value: Value) -> str:
    if value.ci is None:
        return ""
    low, high = (f"{limit:+.1f}".replace("-", "−") for limit in value.ci)
    return f" [bootstrap {low} to {high}]"
