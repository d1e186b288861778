"""The claim on policy lag: with many updates a step FastRL keeps the accuracy that the baseline loses."""

from __future__ import annotations

from analysis.claims.claim import Claim, above, in_percent, in_points, not_tested
from analysis.comparison import read
from analysis.lag_arms import LagArm, lag_arms
from analysis.measures import accuracy, decoding_name, mean_of_steps
from analysis.study import Study


def robust_to_lag(study: Study) -> Claim:
    """The most updates at the highest learning rate: FastRL with mini-batches against the baseline's method.

    A control with about as few updates as FastRL then makes says whether pruning is the cause.
    """
    key = "robust_to_lag"
    statement = "With many updates a step FastRL keeps the accuracy that unpruned training loses."
    arms = lag_arms(study)
    most = max((each.updates for each in arms), default=0)
    rate = max((each.learning_rate for each in arms), default=0.0)
    at_worst = [each for each in arms if each.learning_rate == rate]
    method = study.baseline.method
    unpruned = _one(at_worst, method, most, fixed=True)
    pruned = _one(at_worst, "fastrl", most, fixed=False)
    if unpruned is None or pruned is None:
        return not_tested(key, statement, "The study has no lag panel.")
    benchmark = study.plan.report.in_domain
    decoding = study.main_decoding(benchmark)
    readings = read(study, accuracy(benchmark, decoding))
    value = readings.difference(pruned.arm, unpruned.arm)
    values = [("FastRL, mini-batches, over unpruned", value)]
    made = read(study, mean_of_steps("actor/updates", "", 1)).mean(pruned.arm).value
    updates = f" and makes {made:.1f} updates a step" if made else ""
    finding = (
        f"{most} updates, learning rate {rate:g}, {decoding_name(decoding)}: "
        f"{pruned.name} gets {in_percent(readings.mean(pruned.arm))}{updates}, "
        f"{unpruned.name} {in_percent(readings.mean(unpruned.arm))}; difference {in_points(value)}."
    )
    shown = sorted({each.updates for each in at_worst if each.arm.method == "fastrl"})
    controls = [each for each in at_worst if each.arm.method == method and each.updates not in shown]
    for control in controls:
        score = readings.mean(control.arm)
        values.append((f"{control.name}, {control.updates} updates", score))
        finding += f" {control.name} with {control.updates} updates a step gets {in_percent(score)}."
    return Claim(key, statement, above(value, 0), finding, "", tuple(values))


def _one(arms: list[LagArm], method: str, updates: int, fixed: bool) -> LagArm | None:
    wanted = (method, updates, fixed)
    return next((each for each in arms if (each.arm.method, each.updates, each.fixed) == wanted), None)
