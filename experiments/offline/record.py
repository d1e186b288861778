"""A replay as a record: what `replay.json` holds, the text of the terminal, and the rows of the CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.commands.text_table import text_table
from fastrl.replay.costs import StageCosts
from fastrl.replay.offline import Outcome
from fastrl.replay.predict import Prediction

SCHEMA = 1
_CSV_HEADER = ("table", "row", "column", "value", "n", "ci_low", "ci_high", "source", "run_ids")


def replay_record(
    *,
    source: str,
    notes: Sequence[str],
    subsample: str,
    seed: int,
    costs: StageCosts,
    outcomes: Sequence[Outcome],
    predictions: Sequence[Prediction],
) -> dict[str, Any]:
    """Plain containers with everything that the table, the CSV and the figure show."""
    return {
        "schema": SCHEMA,
        "source": source,
        "notes": list(notes),
        "subsample": subsample,
        "seed": seed,
        "costs": {
            "name": costs.name,
            "source": costs.source,
            "unit": costs.unit,
            "note": costs.note,
            "stages": {stage: dict(terms) for stage, terms in costs.stages.items()},
        },
        "methods": [
            {
                "method": outcome.scenario.name,
                "label": outcome.scenario.label,
                "steps": outcome.steps,
                "groups": outcome.groups,
                "kept_per_question": outcome.kept_per_question,
                "sampled_per_question": outcome.sampled_per_question,
                "kept_shares": [int(count) / outcome.groups for count in outcome.kept_counts],
                "epochs": list(outcome.epochs),
                "n_by_epoch": list(outcome.n_by_epoch),
                "kept_by_epoch": list(outcome.kept_by_epoch),
                **_predicted(prediction),
            }
            for outcome, prediction in zip(outcomes, predictions, strict=True)
        ],
    }


def _predicted(prediction: Prediction) -> dict[str, Any]:
    return {"stages": prediction.stages, "step": prediction.step, "speed": prediction.speed}


def replay_text(record: Mapping[str, Any]) -> str:
    """Tables for the terminal: predictions, the distribution of the kept count, and G by epoch."""
    methods, costs = record["methods"], record["costs"]
    largest = max(len(method["kept_shares"]) for method in methods) - 1
    width = max(len(method["epochs"]) for method in methods)
    shares = [
        [method["label"], *(f"{100 * share:.0f}" for share in _padded(method["kept_shares"], largest + 1))]
        for method in methods
    ]
    paths = [
        [method["label"], *(f"{n:.3g} ({kept:.2f})" for n, kept in _by_epoch(method))] for method in methods
    ]
    epochs = [str(epoch + 1) for epoch in methods[0]["epochs"]]
    parts = [
        f"{record['source']}: {methods[0]['steps']} steps, {methods[0]['groups']} questions visited",
        prediction_text(methods, costs["unit"]),
        "Share of questions by kept trajectories (%)",
        text_table(["method", *map(str, range(largest + 1))], shares),
        "Rollouts per question by epoch (kept per question)",
        text_table(["method", *epochs], [row + [""] * (width + 1 - len(row)) for row in paths]),
        f"costs: {costs['source']}, {costs['name']}; {costs['note']}",
        f"groups smaller than recorded: {_SUBSAMPLE[record['subsample']].format(seed=record['seed'])}",
        *(f"note: {note}" for note in record["notes"]),
    ]
    return "\n\n".join(parts)


_SUBSAMPLE = {
    "first": "the first trajectories of each group",
    "random": "a random choice of each group (seed {seed})",
}


def prediction_text(methods: Sequence[Mapping[str, Any]], unit: str) -> str:
    """Kept and sampled per question, predicted seconds of the mean step by stage, and speed."""
    stages = list(methods[0]["stages"])
    header = ["method", "kept", "G", *stages, f"step ({unit})", "speed"]
    rows = [
        [
            method["label"],
            f"{method['kept_per_question']:.2f}",
            f"{method['sampled_per_question']:.2f}",
            *(f"{method['stages'][stage]:.4g}" for stage in stages),
            f"{method['step']:.4g}",
            f"{method['speed']:.2f}×",
        ]
        for method in methods
    ]
    return text_table(header, rows)


def replay_csv(record: Mapping[str, Any]) -> str:
    """Long rows with the columns of the other tables' CSV; n is the number of recorded steps."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_HEADER)
    derived = record["costs"]["source"] == "derived"
    for method in record["methods"]:
        for column, value, is_cost in _values(method, record["costs"]["unit"]):
            source = "derived" if is_cost and derived else "simulated"
            writer.writerow(
                (
                    "replay",
                    method["label"],
                    column,
                    repr(value),
                    method["steps"],
                    "",
                    "",
                    source,
                    record["source"],
                )
            )
    return text.getvalue()


def _values(method: Mapping[str, Any], unit: str) -> Iterator[tuple[str, float, bool]]:
    yield "kept_per_question", method["kept_per_question"], False
    yield "sampled_per_question", method["sampled_per_question"], False
    for count, share in enumerate(method["kept_shares"]):
        yield f"share_with_{count}_kept", share, False
    for epoch, (n, kept) in zip(method["epochs"], _by_epoch(method), strict=True):
        yield f"rollouts_epoch_{epoch}", n, False
        yield f"kept_epoch_{epoch}", kept, False
    for stage, seconds in method["stages"].items():
        yield f"{stage}_{unit}", seconds, True
    yield f"step_{unit}", method["step"], True
    yield "speed", method["speed"], True


def _by_epoch(method: Mapping[str, Any]) -> list[tuple[float, float]]:
    return list(zip(method["n_by_epoch"], method["kept_by_epoch"], strict=True))


def _padded(values: Sequence[float], length: int) -> list[float]:
    return [*values, *[0.0] * (length - len(values))]
