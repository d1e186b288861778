"""The claim on FastRL's threshold: the best accuracy is at τ = 0.8."""

from __future__ import annotations

from analysis.claims.claim import SIMULTANEOUS, Claim, above, all_of, in_percent, in_points, not_tested
from analysis.comparison import read
from analysis.measures import accuracy, decoding_name
from analysis.study import Study

PAPER_TAU = 0.8


def peak_at_paper_tau(study: Study) -> Claim:
    """Whether the paper's τ beats every other τ of the sweep; the best of the others is the test."""
    key, statement = "peak_at_paper_tau", f"Accuracy peaks at τ = {PAPER_TAU:g}."
    benchmark = study.plan.report.in_domain
    decoding = study.main_decoding(benchmark)
    readings = read(study, accuracy(benchmark, decoding))
    means = [(arm, readings.mean(arm)) for arm in study.tau_arms]
    scored = [(arm, value) for arm, value in means if value.value is not None]
    ours = next((arm for arm, _ in scored if arm.tau == PAPER_TAU), None)
    others = [arm for arm, _ in scored if arm.tau != PAPER_TAU]
    if ours is None or not others:
        return not_tested(key, statement, f"The study has no τ = {PAPER_TAU:g} beside others.")
    best, best_value = max(scored, key=lambda pair: pair[1].value or 0.0)
    differences = [(f"τ = {arm.tau:g}", readings.difference(ours, arm, len(others))) for arm in others]
    verdict = all_of(*(above(value, 0) for _, value in differences))
    lead = f"{decoding_name(decoding)}: highest mean at τ = {best.tau:g} with {in_percent(best_value)}"
    found = "; ".join(f"{in_points(value)} over {name}" for name, value in differences)
    finding = f"{lead}. τ = {PAPER_TAU:g}, paired{SIMULTANEOUS if len(others) > 1 else ''}: {found}."
    return Claim(key, statement, verdict, finding, "", tuple(differences))
