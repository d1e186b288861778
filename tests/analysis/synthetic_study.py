"""Run directories of studies that never ran, written to the contract of docs/design.md, the same every time.

The numbers look like those of small real runs (accuracy rising over steps, seconds by stage, noise between
seeds), so that tables, figures and claims have something to say.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from numpy.typing import NDArray

from experiments.plan import Cell, Plan, ReportSettings, write_plan

STEPS, EPOCH, VALIDATE_EVERY = 40, 8, 4
IN_DOMAIN, OUT_OF_DOMAIN = "laptop_geometry", "laptop_geometry_ood"
QUESTIONS = 256
_TEMPERATURES = {"t1": 1.0, "t0_6": 0.6, "greedy": 0.0}
_SAMPLES = {"t1": 8, "t0_6": 8, "greedy": 1}
HARDWARE = {"machine": "x86_64", "cpu": "Example CPU", "cores": 2, "memory": 8 << 30, "gpus": []}
ALL_TABLES = (
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "table6",
    "table7",
    "table8",
    "table9",
    "time_to_accuracy",
    "comparison",
    "cost",
    "lag",
)
ALL_FIGURES = ("figure1", "figure3", "figure6", "figure7", "profiles", "stages", "lag")
"""All but Figure 5, which `fastrl correlate` computes."""


@dataclass(frozen=True)
class SyntheticArm:
    """An arm and the numbers that its runs scatter around. accuracy, greedy, ood: fractions at the end."""

    method: str
    label: str
    groups: tuple[str, ...]
    seeds: int
    accuracy: float
    greedy: float
    ood: float
    entropy: float
    kept: float
    seconds: float
    tau: float | None = None
    rollouts: tuple[int, ...] = (8, 8, 8, 8, 8)
    updates: int = 4
    update_mode: str = "fixed"
    learning_rate: float = 2e-4

    @property
    def arm_id(self) -> str:
        return f"{self.method}-{zlib.crc32(self.label.encode()):010x}"

    def run_id(self, seed: int) -> str:
        digest = zlib.crc32(f"{self.label}/{seed}".encode())
        return f"{self.method}-laptop_llama-laptop_geometry-s{seed}-{digest:010x}"


ARS = (8, 8, 7, 6, 5)
_MAIN = ("main",)
GRPO = SyntheticArm("grpo", "GRPO", (*_MAIN, "ablation", "pruning"), 5, 0.913, 0.982, 0.62, 0.156, 8, 30.8)
FASTRL = SyntheticArm(
    "fastrl",
    "FastRL",
    (*_MAIN, "tau", "ablation", "pruning"),
    5,
    0.893,
    0.986,
    0.60,
    0.199,
    2.4,
    14.0,
    0.8,
    ARS,
)
CPPO = SyntheticArm("cppo", "CPPO", (*_MAIN, "pruning"), 5, 0.910, 0.994, 0.61, 0.176, 4, 21.2)
MAIN_ARMS = (
    GRPO,
    SyntheticArm("dapo", "DAPO", _MAIN, 5, 0.905, 0.984, 0.62, 0.21, 8, 41.5),
    SyntheticArm("gspo", "GSPO", _MAIN, 5, 0.902, 0.979, 0.60, 0.17, 8, 30.1),
    CPPO,
    SyntheticArm("greso", "GRESO", _MAIN, 5, 0.908, 0.98, 0.61, 0.161, 8, 27.5),
    FASTRL,
)


def _tau(tau: float, accuracy: float, kept: float, seconds: float) -> SyntheticArm:
    label = f"FastRL τ={tau:g}"
    return SyntheticArm("fastrl", label, ("tau",), 5, accuracy, 0.98, 0.6, 0.2, kept, seconds, tau, ARS)


def _rule(method: str, label: str, accuracy: float, kept: float, seconds: float) -> SyntheticArm:
    return SyntheticArm(method, label, ("pruning",), 5, accuracy, 0.985, 0.6, 0.2, kept, seconds)


TAU_ARMS = (
    _tau(0.0, 0.912, 8, 29.9),
    _tau(0.2, 0.9, 5.1, 22.0),
    _tau(0.4, 0.878, 2.9, 16.1),
    _tau(0.6, 0.886, 2.6, 14.9),
    _tau(0.9, 0.89, 2.4, 14.1),
    _tau(1.0, 0.888, 2.4, 14.3),
)
FULL_ARMS = (
    *MAIN_ARMS,
    SyntheticArm("fastrl_dapo", "FastRL on DAPO", _MAIN, 5, 0.887, 0.981, 0.6, 0.22, 2.4, 20.4, 0.8, ARS),
    SyntheticArm("fastrl_gspo", "FastRL on GSPO", _MAIN, 5, 0.884, 0.978, 0.59, 0.2, 2.4, 13.8, 0.8, ARS),
    SyntheticArm(
        "fastrl_without_mdap",
        "FastRL w/o MDAP",
        ("ablation",),
        5,
        0.903,
        0.971,
        0.6,
        0.163,
        7,
        27.8,
        None,
        ARS,
    ),
    SyntheticArm(
        "fastrl_without_ars", "FastRL w/o ARS", ("ablation",), 5, 0.888, 0.973, 0.6, 0.198, 2.5, 16.2, 0.8
    ),
    *TAU_ARMS,
    _rule("advantage_only", "Advantage only", 0.881, 2.4, 14.2),
    _rule("random_25", "Random 25 %", 0.909, 6, 25.9),
    _rule("random_50", "Random 50 %", 0.907, 4, 20.6),
    _rule("random_75", "Random 75 %, 2 kept", 0.883, 2, 12.6),
    _rule("cppo_2_kept", "CPPO, 2 kept", 0.859, 2, 13.1),
)


def _lag_arms() -> Iterable[SyntheticArm]:
    accuracy = {
        ("GRPO", 4): (0.89, 0.913, 0.9),
        ("GRPO", 16): (0.9, 0.86, 0.61),
        ("GRPO", 5): (0.89, 0.912, 0.83),
    }
    accuracy |= {("FastRL fixed", 4): (0.87, 0.893, 0.88), ("FastRL fixed", 16): (0.88, 0.84, 0.6)}
    accuracy |= {("FastRL mini-batch", 4): (0.8, 0.86, 0.87), ("FastRL mini-batch", 16): (0.87, 0.89, 0.8)}
    for (name, updates), values in accuracy.items():
        for rate, value in zip((1e-4, 2e-4, 4e-4), values, strict=True):
            fast = name.startswith("FastRL")
            yield SyntheticArm(
                "fastrl" if fast else "grpo",
                f"{name}, {updates} updates, lr {rate:.0e}".replace("e-0", "e-"),
                ("lag",),
                2,
                value,
                min(0.99, value + 0.07),
                value - 0.3,
                0.2,
                2.4 if fast else 8,
                14.0 if fast else 30.8,
                0.8 if fast else None,
                ARS if fast else (8,) * 5,
                updates,
                "mini_batch" if "mini" in name else "fixed",
                rate,
            )


LAG_ARMS = tuple(_lag_arms())


def write_study(
    root: Path,
    arms: Sequence[SyntheticArm],
    study: str = "laptop",
    tables: Sequence[str] = ALL_TABLES,
    figures: Sequence[str] = ALL_FIGURES,
    baseline: str = "grpo",
    clock: str = "cpu",
) -> Plan:
    """Write a plan and one finished run for each of its cells; returns the plan."""
    cells = []
    for arm in arms:
        for seed in range(arm.seeds):
            write_run(root, arm, seed)
            cells.append(_cell(arm, seed))
    plan = Plan(
        study=study,
        title="A synthetic study",
        baseline=baseline,
        clock=clock,
        commit="0123456789abcdef0123456789abcdef01234567",
        created=1_790_000_000.0,
        cells=tuple(cells),
        report=ReportSettings(tuple(tables), tuple(figures), IN_DOMAIN, (OUT_OF_DOMAIN,), 0.8),
    )
    write_plan(root, plan)
    return plan


def write_run(root: Path, arm: SyntheticArm, seed: int) -> Path:
    """Write the folder of one finished run and return it."""
    run = root / "runs" / arm.run_id(seed)
    rng = np.random.default_rng([seed, zlib.crc32(arm.label.encode())])
    luck = float(np.random.default_rng(seed).normal(0, 0.008))  # what the seed gives every arm alike
    ends = {
        "t1": arm.accuracy + luck + rng.normal(0, 0.008),
        "t0_6": arm.accuracy + 0.04 + luck / 2 + rng.normal(0, 0.006),
        "greedy": arm.greedy + rng.normal(0, 0.004),
    }
    steps = list(_steps(arm, float(ends["t1"]), rng))
    _write(run / "config.yaml", yaml.safe_dump(_config(arm, seed), sort_keys=False, allow_unicode=True))
    _write(run / "steps.jsonl", "".join(json.dumps(step) + "\n" for step in steps))
    for benchmark, offset in ((IN_DOMAIN, 0.0), (OUT_OF_DOMAIN, arm.ood - arm.accuracy)):
        accuracy = {name: float(np.clip(end + offset, 0, 1)) for name, end in ends.items()}
        write_evaluation(run / "eval" / benchmark, accuracy, f"{arm.label}/{seed}", rng)
    _write_json(run / "status.json", {stage: _done() for stage in _STAGES})
    provenance: dict[str, Any] = {
        "commit": "0123456789abcdef",
        "dirty": False,
        "hardware": HARDWARE,
        "steps": STEPS,
    }
    provenance["data"] = {"train": {"questions": 256, "digest": "7ra1"}}
    _write_json(run / "provenance.json", provenance)
    return run


_STAGES = ("train", f"evaluate-{IN_DOMAIN}", f"evaluate-{OUT_OF_DOMAIN}")


def _cell(arm: SyntheticArm, seed: int) -> Cell:
    return Cell(
        run_id=arm.run_id(seed),
        arm=arm.arm_id,
        label=arm.label,
        group=arm.groups[0],
        groups=arm.groups,
        seed=seed,
        method=arm.method,
        model="laptop_llama",
        dataset="laptop_geometry",
        engine="reference",
        tau=arm.tau,
        overrides=(f"method={arm.method}", f"seed={seed}"),
        stages=_STAGES,
    )


def _config(arm: SyntheticArm, seed: int) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "seed": seed,
        "method": {
            "name": arm.method,
            "label": arm.label.split(",")[0].split(" τ")[0].split(" fixed")[0].split(" mini")[0],
        },
        "model": {"name": "laptop_llama", "label": "Laptop Llama (0.3 M)"},
        "dataset": {"name": "laptop_geometry", "label": "Laptop geometry"},
        "training": {
            "epochs": STEPS // EPOCH,
            "updates": arm.updates,
            "update_mode": arm.update_mode,
            "learning_rate": arm.learning_rate,
            "validate_every": VALIDATE_EVERY,
        },
        "engine": {"name": "reference"},
        "benchmarks": {
            IN_DOMAIN: {"label": "Laptop geometry"},
            OUT_OF_DOMAIN: {"label": "Laptop geometry, other families"},
        },
    }


def _steps(arm: SyntheticArm, end: float, rng: np.random.Generator) -> Iterable[dict[str, Any]]:
    """The step log; validation accuracy ends at `end`, CPU seconds add up to about `arm.seconds`."""
    yield {"step": 0, "val/accuracy": 0.49}
    time = 1_790_000_000.0
    for step in range(1, STEPS + 1):
        epoch = (step - 1) // EPOCH
        n = arm.rollouts[epoch]
        kept = min(arm.kept * (1.15 - 0.06 * epoch if arm.kept < 7 else 1), n)
        shares = {
            "gen": 0.145 * n / 8,
            "reward": 0.006,
            "adv": 0.0005,
            "select": 0.004 if arm.kept < 7 else 0.0,
        }
        shares |= {"old": 0.13 * kept / 8, "ref": 0.13 * kept / 8, "update_actor": 0.58 * kept / 8}
        scale = arm.seconds / STEPS / sum(_mean_shares(arm).values())
        cpu = {stage: share * scale * float(rng.normal(1, 0.03)) for stage, share in shares.items()}
        wall = {stage: seconds * 1.02 for stage, seconds in cpu.items()}
        time += 1.3 * sum(wall.values())
        progress = 1 - np.exp(-3.2 * step / STEPS)
        record = {
            "step": step,
            "epoch": epoch,
            "time": time,
            **{f"cpu_s/{stage}": seconds for stage, seconds in cpu.items()},
            "cpu_s/step": sum(cpu.values()),
            **{f"timing_s/{stage}": seconds for stage, seconds in wall.items()},
            "timing_s/step": sum(wall.values()),
            "rollout/n": n,
            "select/kept": round(kept * 32),
            "select/kept_per_question_mean": kept,
            "select/kept_per_question_max": min(n, kept * 1.6),
            "actor/entropy": float(0.45 - (0.45 - arm.entropy) * progress + rng.normal(0, 0.006)),
            "reward/mean": float(0.5 + progress * arm.accuracy),
            "actor/updates": arm.updates
            if arm.update_mode == "fixed"
            else max(1, round(arm.updates * kept / n)),
            "tokens/generated": 32 * n * 16,
            "tokens/trained": round(32 * kept * 16),
            "tokens/total": round(32 * n * 16 + 3 * 32 * kept * 16),
        }
        if step % VALIDATE_EVERY == 0:
            rise = progress / (1 - np.exp(-3.2))
            noise = rng.normal(0, 0.006) if step < STEPS else 0.0
            record["val/accuracy"] = float(0.49 + (end - 0.49) * rise + noise)
        yield record


def _mean_shares(arm: SyntheticArm) -> dict[str, float]:
    n = sum(arm.rollouts) / len(arm.rollouts)
    kept = min(arm.kept, n)
    return {"gen": 0.145 * n / 8, "fixed": 0.0105, "optimisation": 0.84 * kept / 8}


def write_evaluation(
    folder: Path, accuracy: Mapping[str, float], checkpoint: str, rng: np.random.Generator
) -> None:
    """Write the samples of a benchmark, and the results that they give.

    folder: `eval/<benchmark>`. accuracy: by decoding, to the nearest that so many samples can have.
    """
    folder.mkdir(parents=True, exist_ok=True)
    right = {name: _answers(value, _SAMPLES[name], rng) for name, value in accuracy.items()}
    columns: dict[str, Any] = {name: [] for name in ("decoding", "question_id", "sample", "correct")}
    for name, answers in right.items():
        question, sample = np.indices(answers.shape)
        columns["decoding"] += [name] * answers.size
        columns["question_id"] += [f"question/{number:03d}" for number in question.ravel()]
        columns["sample"] += sample.ravel().tolist()
        columns["correct"] += answers.ravel().tolist()
    pq.write_table(pa.table(columns), folder / "samples.parquet")
    means = {name: float(answers.mean()) for name, answers in right.items()}
    _write_json(folder / "results.json", _results(folder.name, means, checkpoint))


def _answers(accuracy: float, samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(questions, samples) verdicts; hard questions are hard for every run."""
    ease = np.linspace(-0.3, 0.3, QUESTIONS)[:, None] - rng.random((QUESTIONS, samples))
    right = np.zeros(ease.size, dtype=np.bool_)
    right[np.argsort(-ease, axis=None)[: round(accuracy * ease.size)]] = True
    return right.reshape(ease.shape)


def _results(benchmark: str, accuracy: Mapping[str, float], checkpoint: str) -> dict[str, Any]:
    decodings: dict[str, Any] = {}
    for name, value in accuracy.items():
        metrics = {"accuracy": value}
        if _TEMPERATURES[name]:
            passes = {f"pass_at_{k}": 1 - (1 - value) ** (1 + 0.4 * np.log2(k)) for k in (1, 2, 4, 8)}
            metrics = {"accuracy": value, "avg_at_8": value, **passes}
        decodings[name] = {"temperature": _TEMPERATURES[name], "samples": _SAMPLES[name], "metrics": metrics}
    return {
        "schema": 1,
        "benchmark": benchmark,
        "settings_digest": "5e771265",
        "n_questions": QUESTIONS,
        "decodings": decodings,
        "digests": {"data": "da7a", "prompt": "9409", "extractor": "e87c", "checkpoint": checkpoint},
        "checkpoint": "checkpoints/final",
        "seconds": 8.1,
    }


def _done() -> dict[str, Any]:
    return {
        "state": "done",
        "attempt": 1,
        "updated": 1_790_000_100.0,
        "heartbeat": 1_790_000_100.0,
        "host": "host",
        "pid": 1,
        "slurm_job_id": None,
        "error": None,
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_json(path: Path, record: dict[str, Any]) -> None:
    _write(path, json.dumps(record, indent=1) + "\n")
