"""A correlation as a record: what `correlate.json` holds, and the text of the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.commands.text_table import text_table
from experiments.offline.gradient_pairs import GradientPairs

SCHEMA = 1


def correlation_record(
    *,
    source: str,
    model: str,
    steps: tuple[int, int],
    gradients: str,
    sketch: int | None,
    constant_groups: int,
    pairs: GradientPairs,
    correlations: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Plain containers. correlations: by subset of the pairs, `analysis.offline.correlation.Correlation`."""
    return {
        "schema": SCHEMA,
        "source": source,
        "model": model,
        "steps": list(steps),
        "gradients": gradients,
        "sketch": sketch,
        "head_error": None
        if pairs.head_error is None
        else {"root_mean_square": pairs.head_error[0], "correlation": pairs.head_error[1]},
        "groups": pairs.groups,
        "trajectories": pairs.trajectories,
        "constant_groups": constant_groups,
        "pairs": len(pairs.question),
        "pairs_without_gradient": pairs.skipped,
        "correlations": [{"subset": name, **value} for name, value in correlations.items()],
    }


def correlation_text(record: Mapping[str, Any]) -> str:
    """A table for the terminal with a line a subset."""
    rows = [
        [
            entry["subset"],
            str(entry["pairs"]),
            str(entry["questions"]),
            _interval(entry["pearson"]),
            _interval(entry["spearman"]),
        ]
        for entry in record["correlations"]
    ]
    first, last = record["steps"]
    lines = [
        f"{record['source']}, steps {first} to {last}: {record['groups']} groups, {record['trajectories']} "
        f"trajectories, gradients of {record['model']}",
        "",
        text_table(["pairs of equal advantage", "pairs", "questions", "Pearson", "Spearman"], rows),
        "",
        "95 % intervals over questions (bootstrap)",
        f"left out: {record['constant_groups']} groups of constant reward, "
        f"{record['pairs_without_gradient']} pairs without a gradient (empty responses)",
    ]
    if record["gradients"] == "exact":
        lines.append("gradients: exact, of all trained parameters")
    else:
        lines.append(f"gradients: of the output layer, in a sketch of {record['sketch']} numbers per state")
        error = record["head_error"]
        lines.append(
            f"against exact ones on a subsample: root mean square {error['root_mean_square']:.3f}, "
            f"correlation {error['correlation']:.3f}"
            if error
            else "their error was not measured"
        )
    return "\n".join(lines)


def _interval(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "no variation"
    if estimate["ci"] is None:
        return f"{estimate['value']:.3f}"
    low, high = estimate["ci"]
    return f"{estimate['value']:.3f} [{low:.3f}, {high:.3f}]"
