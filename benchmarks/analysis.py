"""The report of a study with many runs: seconds, memory, and how they grow.

    python benchmarks/analysis.py [--runs 100 1000] [--steps 500] [--benchmarks 8] [--questions 1000]

The runs are simulated, written to a temporary folder and removed: 5 seeds an arm, step logs, results and
samples (16 a question) in the form of real runs. Each size is reported in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from experiments.plan import Cell, Plan, ReportSettings, write_plan

SEEDS, SAMPLES = 5, 16
METHODS = ("grpo", "cppo", "fastrl", "dapo", "gspo", "greso")
STAGES = {
    "gen": 80.0,
    "reward": 0.3,
    "adv": 0.1,
    "select": 0.1,
    "old": 60.0,
    "ref": 60.0,
    "update_actor": 300.0,
}
TABLES = ("table1", "table3", "table4", "table6", "table8", "time_to_accuracy", "comparison", "cost")
PROJECT = Path(__file__).parents[1]
REPORT = """
import json, resource, sys, time
from pathlib import Path
from analysis.report import build_report
started, cpu = time.perf_counter(), time.process_time()
build_report(Path(sys.argv[1]), "simulated", formats=("md", "tex", "csv", "html", "png", "pdf"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([time.perf_counter() - started, time.process_time() - cpu, peak]))
"""
"""A program of its own: this file's name would hide the package of the same name."""
FIGURES = ("figure1", "figure6", "figure7", "profiles", "stages")


def main() -> None:
    parser = argparse.ArgumentParser(description="The report of a study with many simulated runs.")
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--benchmarks", type=int, default=8)
    parser.add_argument("--questions", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'runs':>6} {'':>6} {'write':>9} {'report':>9} {'CPU':>9} {'memory':>9}")
    for runs in options.runs:
        folder = Path(tempfile.mkdtemp(prefix="fastrl_analysis_"))
        try:
            started = time.perf_counter()
            write_study(folder, runs, options.steps, options.benchmarks, options.questions)
            written = time.perf_counter() - started
            for when in ("first", "again"):
                command = [sys.executable, "-c", REPORT, str(folder)]
                done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True)
                seconds, cpu, memory = json.loads(done.stdout)
                took = f"{written:>7.1f} s {seconds:>7.1f} s {cpu:>7.1f} s {memory:>6.2f} GB"
                print(f"{runs:>6} {when:>6} {took}", flush=True)
        finally:
            shutil.rmtree(folder)


def write_study(root: Path, runs: int, steps: int, benchmarks: int, questions: int) -> None:
    """A study of simulated runs: the six methods first, further arms as a threshold sweep."""
    names = tuple(f"benchmark_{number}" for number in range(benchmarks))
    cells = []
    for run in range(runs):
        arm, seed = divmod(run, SEEDS)
        method = METHODS[arm] if arm < len(METHODS) else "fastrl"
        group = "main" if arm < len(METHODS) else "tau"
        tau = 0.8 if method == "fastrl" else None
        cell = Cell(
            run_id=f"{method}-simulated-s{seed}-{arm:010x}",
            arm=f"{method}-{arm:010x}",
            label=method if group == "main" else f"fastrl {arm}",
            group=group,
            groups=(group,),
            seed=seed,
            method=method,
            model="simulated",
            dataset="simulated",
            engine="simulated",
            tau=tau if group == "main" or tau is None else arm / (runs / SEEDS),
            overrides=(f"seed={seed}",),
            stages=("train", *(f"evaluate-{name}" for name in names)),
        )
        cells.append(cell)
        write_run(root / "runs" / cell.run_id, cell, names, steps, questions)
    settings = ReportSettings(TABLES, FIGURES, names[0], names[1:], 0.6)
    plan = Plan("simulated", "Simulated runs", "grpo", "wall", None, 0.0, tuple(cells), settings)
    write_plan(root, plan)


def write_run(run: Path, cell: Cell, benchmarks: tuple[str, ...], steps: int, questions: int) -> None:
    rng = np.random.default_rng([cell.seed, int(cell.arm.rpartition("-")[2], 16)])
    run.mkdir(parents=True)
    config: dict[str, Any] = {"schema_version": 1, "seed": cell.seed, "training": {"validate_every": 0}}
    for part in ("method", "model", "dataset"):
        config[part] = {"name": getattr(cell, part), "label": "simulated"}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    done: dict[str, Any] = {
        "state": "done",
        "attempt": 1,
        "updated": 0.0,
        "heartbeat": 0.0,
        "host": "",
        "pid": 0,
    }
    done |= {"slurm_job_id": None, "error": None}
    (run / "status.json").write_text(json.dumps(dict.fromkeys(cell.stages, done)))
    hardware = {"cpu": "simulated", "cores": 2, "gpus": ["simulated"] * 4}
    (run / "provenance.json").write_text(json.dumps({"hardware": hardware, "steps": steps}))
    with (run / "steps.jsonl").open("w") as log:
        for step in range(1, steps + 1):
            log.write(json.dumps(step_record(step, steps, rng)) + "\n")
    for benchmark in benchmarks:
        write_evaluation(run / "eval" / benchmark, benchmark, questions, rng)


def step_record(step: int, steps: int, rng: np.random.Generator) -> dict[str, Any]:
    seconds = {stage: mean * float(rng.uniform(0.9, 1.1)) for stage, mean in STAGES.items()}
    record = {
        "step": step,
        "epoch": step * 10 // (steps + 1),
        "time": 500.0 * step,
        **{f"timing_s/{stage}": value for stage, value in seconds.items()},
        "timing_s/step": sum(seconds.values()),
        "rollout/n": 8,
        "select/kept": 1000,
        "select/kept_per_question_mean": 3.0,
        "actor/entropy": float(rng.uniform(0.2, 0.3)),
        "actor/updates": 4,
        "reward/mean": 0.6,
        "tokens/generated": 400_000,
        "tokens/trained": 150_000,
        "tokens/total": 850_000,
    }
    return record | ({"val/accuracy": 0.3 + 0.4 * step / steps} if step % 10 == 0 else {})


def write_evaluation(folder: Path, benchmark: str, questions: int, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    correct = rng.random((questions, SAMPLES)) < 0.6
    accuracy = float(correct.mean())
    metrics = {"accuracy": accuracy, "avg_at_16": accuracy, "pass_at_16": float(correct.any(axis=1).mean())}
    decoding = {"temperature": 1.0, "samples": SAMPLES, "metrics": metrics}
    results = {"schema": 1, "benchmark": benchmark, "n_questions": questions, "decodings": {"t1": decoding}}
    (folder / "results.json").write_text(json.dumps(results))
    columns = {
        "decoding": ["t1"] * correct.size,
        "question_id": np.repeat([f"{benchmark}/{number}" for number in range(questions)], SAMPLES),
        "response": ["a response of some length"] * correct.size,
        "correct": correct.ravel(),
    }
    pq.write_table(pa.table(columns), folder / "samples.parquet")


if __name__ == "__main__":
    main()
