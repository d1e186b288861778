"""Show how far each cell of a study is.

fastrl status study=laptop
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections import Counter

from experiments.commands.arguments import (
    add_words,
    named_study,
    refuse_overrides,
    results_root,
    sorted_words,
)
from experiments.commands.text_table import text_table
from experiments.plan import read_plan
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "study=NAME, and paths.root=FOLDER when the results lie elsewhere")


def execute(arguments: Namespace) -> int:
    words = sorted_words(arguments.words)
    study = named_study(words)
    refuse_overrides(words, ("paths",), "a status shows the study's plan as it was run")
    root = results_root(words.overrides)
    plan = read_plan(root, study)
    names = list(dict.fromkeys(stage for cell in plan.cells for stage in cell.stages))
    now = time.time()
    counts: Counter[str] = Counter()
    rows, failures = [], []
    for number, cell in enumerate(plan.cells, start=1):
        run = RunDirectory(root / "runs" / cell.run_id)
        status = run.status()
        steps = run.steps()
        counts.update(status[stage].state if stage in status else "pending" for stage in cell.stages)
        step = str(steps[-1]["step"]) if steps else "-"
        stages = [_state(status.get(stage), now) if stage in cell.stages else "" for stage in names]
        rows.append([str(number), cell.label, str(cell.seed), step, *stages])
        for stage, entry in status.items():
            if stage in cell.stages and entry.error is not None:
                failures.append(f"cell {number}, {stage}: {entry.error.kind}: {entry.error.message}")
    print(text_table(["cell", "label", "seed", "step", *names], rows))
    print("stages: " + ", ".join(f"{count} {state}" for state, count in counts.most_common()))
    print("\n".join(failures), end="\n" if failures else "")
    return 0


def _state(entry: StageStatus | None, now: float) -> str:
    if entry is None:
        return "pending"
    if entry.state == "running":
        return f"running, seen {max(0, round(now - entry.heartbeat))} s ago"
    return entry.state
