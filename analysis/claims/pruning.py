"""Claims on what is pruned: against pruning by advantage alone, and against controls that keep as few."""

from __future__ import annotations

from analysis.claims.claim import SIMULTANEOUS, Claim, above, all_of, in_points, not_tested, paper_says
from analysis.comparison import read
from analysis.measures import accuracy, decoding_name
from analysis.study import Study

_AS_FEW = ("random_75", "cppo_2_kept")


def better_than_advantage_alone(study: Study) -> Claim:
    """Keeping what differs against keeping one trajectory an advantage."""
    return _better(
        study,
        "better_than_advantage_alone",
        "FastRL is more accurate than pruning by advantage alone.",
        ("advantage_only",),
        paper_says("table5", "fastrl", "out_of_domain")
        + " against "
        + paper_says("table5", "advantage_only", "out_of_domain"),
    )


def better_than_as_few(study: Study) -> Claim:
    """A control of ours: the same number kept, chosen at random or by CPPO."""
    return _better(
        study,
        "better_than_as_few",
        "It matters which trajectories FastRL keeps: rules that keep as few are less accurate.",
        _AS_FEW,
        "",
    )


def pruning_costs_nothing(study: Study) -> Claim:
    """FastRL against the same schedule without pruning."""
    return _better(
        study,
        "pruning_costs_nothing",
        "Pruning by MDAP makes FastRL more accurate than its schedule alone.",
        ("fastrl_without_mdap",),
        paper_says("table2", "fastrl_without_mdap", "out_of_domain_change"),
    )


def _better(study: Study, key: str, statement: str, methods: tuple[str, ...], reported: str) -> Claim:
    """FastRL's in-domain accuracy above that of every arm with one of the methods."""
    full, benchmark = study.main_arm("fastrl"), study.plan.report.in_domain
    others = [arm for arm in study.tagged("pruning", "ablation") if arm.method in methods]
    if full is None or not others:
        return not_tested(key, statement, f"The study has no {' or '.join(methods)}.", reported)
    decoding = study.main_decoding(benchmark)
    readings = read(study, accuracy(benchmark, decoding))
    values = tuple((arm.label, readings.difference(full, arm, len(others))) for arm in others)
    verdict = all_of(*(above(value, 0) for _, value in values))
    found = "; ".join(f"{in_points(value)} over {label}" for label, value in values)
    several = SIMULTANEOUS if len(others) > 1 else ""
    finding = f"{decoding_name(decoding)}, paired{several}: {found}."
    return Claim(key, statement, verdict, finding, reported, values)
