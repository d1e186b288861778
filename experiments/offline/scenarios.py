"""The methods to replay, from names and thresholds to parts, at the number of rollouts that was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.compose import compose_cell
from experiments.offline.sources import RecordedRollouts
from fastrl.alignment import divisor_for
from fastrl.method import Method, build_method
from fastrl.replay.offline import Scenario


def scenarios(
    recorded: RecordedRollouts,
    n: int,
    taus: Sequence[float],
    methods: Sequence[str],
    divisor: int | None,
    config_dirs: Sequence[Path],
) -> list[Scenario]:
    """GRPO with all n rollouts first, the baseline of every speed; then FastRL by threshold; then methods.

    divisor: kept trajectories are aligned to a multiple of it; None takes that of the run's training
    settings, or 1 for files of others. Raises UserError for an unknown method or an impossible value.
    """
    chosen = [("GRPO", ["method=grpo"])]
    chosen += [(f"FastRL τ={tau:g}", ["method=fastrl", f"fastrl.tau={tau}"]) for tau in taus]
    chosen += [("", [f"method={name}"]) for name in methods if name != "grpo"]
    built = []
    for label, overrides in chosen:
        config = compose_cell([*overrides, f"method.rollouts.n={n}"], config_dirs)["method"]
        method = build_method(config)
        aligned = divisor or _divisor(recorded.config, method)
        built.append(Scenario(config["name"], label or config["label"], method, aligned))
    return built


def _divisor(config: Mapping[str, Any] | None, method: Method) -> int:
    """As the engine of the run aligns: see `fastrl.alignment.divisor_for`."""
    if config is None:
        return 1
    training = config["training"]
    return divisor_for(
        "mini_batch" if training["update_mode"] == "mini_batch" else "data_parallel",
        mini_batch_questions=training["questions_per_step"] // training["updates"],
        initial_rollouts=method.rollouts.next_n(method.rollouts.initial_state()),
        data_parallel=config["engine"]["data_parallel"],
        updates=training["updates"],
    )
