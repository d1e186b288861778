"""Claims on time: training, generation, the other stages, and the way to a target accuracy."""

from __future__ import annotations

from analysis.claims.claim import Claim, above, all_of, as_ratio, not_tested, paper_says
from analysis.comparison import read
from analysis.measures import Measure, stage_time, time_to_accuracy, training_time
from analysis.step_frames import OPTIMISATION
from analysis.study import Study


def faster_training(study: Study) -> Claim:
    """FastRL's training time against the baseline's, at equal steps."""
    return _faster(
        study,
        "faster_training",
        f"FastRL trains faster than {study.baseline.label} for the same number of steps.",
        training_time(study),
        paper_says("table1", "fastrl", "speed"),
    )


def faster_to_target(study: Study) -> Claim:
    """FastRL's time to the target accuracy against the baseline's."""
    target = study.plan.report.target_accuracy
    return _faster(
        study,
        "faster_to_target",
        f"FastRL reaches {100 * target:g} % validation accuracy sooner than {study.baseline.label}.",
        time_to_accuracy(study, target),
        "",
    )


def faster_generation(study: Study) -> Claim:
    """Generation, which only the rollout schedule can make faster."""
    return _faster(
        study,
        "faster_generation",
        "FastRL's rollout schedule makes generation faster.",
        stage_time(study, ("gen",), "generation"),
        paper_says("table8", "fastrl", "generation_speed"),
    )


def faster_optimisation(study: Study) -> Claim:
    """Everything of a step but generation and reward."""
    return _faster(
        study,
        "faster_optimisation",
        "FastRL's pruning makes the stages after generation and reward faster.",
        stage_time(study, OPTIMISATION, "optimisation"),
        paper_says("table8", "fastrl", "optimisation_speed"),
    )


def both_parts_save_time(study: Study) -> Claim:
    """Training without MDAP and without ARS, each against the whole."""
    key, statement = "both_parts_save_time", "Both parts of FastRL save time: without either it is slower."
    reported = paper_says("table2", "fastrl_without_mdap", "speed")
    full, parts = study.main_arm("fastrl"), study.tagged("ablation")
    without = [arm for arm in parts if arm.method in ("fastrl_without_mdap", "fastrl_without_ars")]
    if full is None or not without:
        return not_tested(key, statement, "The study has no ablation of FastRL.", reported)
    times = read(study, training_time(study))
    values = [(arm.label, times.speed(full, arm)) for arm in without]
    verdict = all_of(*(above(value, 1) for _, value in values))
    found = "; ".join(f"{as_ratio(value)} over {label}" for label, value in values)
    return Claim(key, statement, verdict, f"Speed of {full.label}: {found}.", reported, tuple(values))


def _faster(study: Study, key: str, statement: str, time: Measure, reported: str) -> Claim:
    arm, baseline = study.main_arm("fastrl"), study.baseline
    if arm is None:
        return not_tested(key, statement, "The study has no FastRL among its main methods.", reported)
    value = read(study, time).speed(arm, baseline)
    finding = f"{as_ratio(value)} in {study.clock.unit}."
    return Claim(key, statement, above(value, 1), finding, reported, (("speed", value),))
