"""The paper's claims, each tested on a study's records. Adding one: a function, and a line here."""

from __future__ import annotations

from analysis.claims.accuracy import (
    cppo_loses_accuracy,
    higher_at_equal_steps,
    higher_at_equal_time,
    higher_out_of_domain,
    more_solved_by_several,
)
from analysis.claims.claim import ClaimTest
from analysis.claims.lag import robust_to_lag
from analysis.claims.parity import nothing_pruned_is_baseline
from analysis.claims.pruning import better_than_advantage_alone, better_than_as_few, pruning_costs_nothing
from analysis.claims.speed import (
    both_parts_save_time,
    faster_generation,
    faster_optimisation,
    faster_to_target,
    faster_training,
)
from analysis.claims.threshold import peak_at_paper_tau

CLAIMS: tuple[ClaimTest, ...] = (
    faster_training,
    faster_to_target,
    faster_generation,
    faster_optimisation,
    higher_at_equal_steps,
    higher_at_equal_time,
    higher_out_of_domain,
    more_solved_by_several,
    peak_at_paper_tau,
    both_parts_save_time,
    pruning_costs_nothing,
    better_than_advantage_alone,
    better_than_as_few,
    cppo_loses_accuracy,
    robust_to_lag,
    nothing_pruned_is_baseline,
)
