"""The report of a study with many runs: seconds, memory, and how they grow.

    python -m benchmarks.analysis [--runs 100 1000] [--steps 500] [--benchmarks 8] [--questions 1000]

The runs are simulated, written to a temporary folder and removed: step logs, results and samples (16 a
question) in the form of real runs; of the samples' files a few are distinct, and linked many times. A third
of the arms sweep a threshold; the others are six methods on as many policies as it takes, all compared with
their baseline question by question. Each report is made in a process of its own.
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
from numpy.typing import NDArray

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
TABLES = (
    *(f"table{number}" for number in range(1, 10)),
    "time_to_accuracy",
    "comparison",
    "cost",
)
FIGURES = ("figure1", "figure3", "figure6", "figure7", "profiles", "stages")
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

DISTINCT_LOGS = 40
DISTINCT_SAMPLES = 12
"""Files of samples of a benchmark, each of which many runs share."""

RESPONSE_WORDS = 60
"""Words of a response: a report must not read them."""


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
    """A study of simulated runs, a plan and a folder each."""
    names = tuple(f"benchmark_{number}" for number in range(benchmarks))
    rng = np.random.default_rng(0)
    samples = {name: write_samples(root / "samples", name, questions, rng) for name in names}
    noise = rng.uniform(0.9, 1.1, (DISTINCT_LOGS, steps, len(STAGES)))
    arms = -(-runs // SEEDS)
    cells = [
        simulated_cell(*divmod(run, SEEDS), arms=arms, swept=arms // 3, benchmarks=names)
        for run in range(runs)
    ]
    for number, cell in enumerate(cells):
        write_run(root / "runs" / cell.run_id, cell, noise[number % DISTINCT_LOGS])
        for name in names:
            which = int(rng.integers(DISTINCT_SAMPLES))
            write_evaluation(
                root / "runs" / cell.run_id / "eval" / name, name, questions, *samples[name][which]
            )
    settings = ReportSettings(TABLES, FIGURES, names[0], names[1:], 0.6)
    plan = Plan("simulated", "Simulated runs", "grpo", "wall", None, 0.0, tuple(cells), settings)
    write_plan(root, plan)


def simulated_cell(arm: int, seed: int, arms: int, swept: int, benchmarks: tuple[str, ...]) -> Cell:
    """The last `swept` arms are FastRL's on the first policy, at different thresholds."""
    main = arm < arms - swept
    policy, number = divmod(arm, len(METHODS)) if main else (0, 0)
    method = METHODS[number] if main else "fastrl"
    threshold = 0.8 if main else round((arm - arms + swept) / swept, 4)
    return Cell(
        run_id=f"{method}-simulated-s{seed}-{arm:010x}",
        arm=f"{method}-{arm:010x}",
        label=(f"{method}, policy {policy}" if policy else method) if main else f"fastrl τ={threshold}",
        group="main" if main else "tau",
        groups=("main", "ablation") if main and policy == 0 else ("main",) if main else ("tau",),
        seed=seed,
        method=method,
        model=f"policy_{policy}",
        dataset="simulated",
        engine="simulated",
        tau=threshold if method == "fastrl" else None,
        overrides=(f"seed={seed}",),
        stages=("train", *(f"evaluate-{name}" for name in benchmarks)),
    )


def write_run(run: Path, cell: Cell, noise: NDArray[np.float64]) -> None:
    """All of a run but its evaluations. noise: (steps, stages) factors of the stages' seconds."""
    run.mkdir(parents=True)
    config: dict[str, Any] = {"schema_version": 1, "seed": cell.seed, "training": {"validate_every": 10}}
    for part in ("method", "model", "dataset"):
        config[part] = {"name": getattr(cell, part), "label": "simulated"}
    (run / "config.yaml").write_text(json.dumps(config))
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
    (run / "provenance.json").write_text(json.dumps({"hardware": hardware, "steps": len(noise)}))
    share = 0.4 if cell.method == "fastrl" else 1.0
    records = [step_record(step, len(noise), share, row) for step, row in enumerate(noise.tolist(), start=1)]
    (run / "steps.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))


def step_record(step: int, steps: int, share: float, noise: list[float]) -> dict[str, Any]:
    means = {name: mean if name in ("gen", "reward") else mean * share for name, mean in STAGES.items()}
    seconds = {name: mean * own for (name, mean), own in zip(means.items(), noise, strict=True)}
    record = {
        "step": step,
        "epoch": (step - 1) * 10 // steps,
        "time": 500.0 * step,
        **{f"timing_s/{name}": value for name, value in seconds.items()},
        "timing_s/step": sum(seconds.values()),
        "rollout/n": 8,
        "select/kept": round(2048 * share),
        "select/kept_per_question_mean": 8 * share,
        "actor/entropy": 0.25 * noise[0],
        "actor/updates": 4,
        "reward/mean": 0.6,
        "tokens/generated": 400_000,
        "tokens/trained": 150_000,
        "tokens/total": 850_000,
    }
    return record | ({"val/accuracy": 0.3 + 0.4 * step / steps} if step % 10 == 0 else {})


def write_samples(
    folder: Path, benchmark: str, questions: int, rng: np.random.Generator
) -> list[tuple[Path, dict[str, float]]]:
    """Distinct files of samples with their metrics, for the runs to link."""
    folder.mkdir(parents=True, exist_ok=True)
    words = np.array([f"word{number}" for number in range(2000)])
    texts = np.array([" ".join(each) for each in words[rng.integers(2000, size=(4000, RESPONSE_WORDS))]])
    written = []
    for number in range(DISTINCT_SAMPLES):
        correct = rng.random((questions, SAMPLES)) < rng.uniform(0.5, 0.7)
        columns = {
            "decoding": ["t1"] * correct.size,
            "question_id": np.repeat([f"{benchmark}/{question}" for question in range(questions)], SAMPLES),
            "sample": np.tile(np.arange(SAMPLES), questions),
            "response": texts[rng.integers(len(texts), size=correct.size)],
            "correct": correct.ravel(),
        }
        path = folder / f"{benchmark}_{number}.parquet"
        pq.write_table(pa.table(columns), path)
        accuracy = float(correct.mean())
        solved = float(correct.any(axis=1).mean())
        written.append((path, {"accuracy": accuracy, "avg_at_16": accuracy, "pass_at_16": solved}))
    return written


def write_evaluation(
    folder: Path, benchmark: str, questions: int, samples: Path, metrics: dict[str, float]
) -> None:
    folder.mkdir(parents=True)
    decoding = {"temperature": 1.0, "samples": SAMPLES, "metrics": metrics}
    results = {"schema": 1, "benchmark": benchmark, "n_questions": questions, "decodings": {"t1": decoding}}
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "samples.parquet").hardlink_to(samples)


if __name__ == "__main__":
    main()
