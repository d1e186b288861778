"""Pairs per second of the open-answer grader, against math-verify alone in the same pool.

    python -m benchmarks.grading [--pairs 4000] [--workers 2] [--alone 200]

The pairs are made by rule: numbers, fractions, roots, units, letters and lists, each written in two ways or
with another value, and a share of algebra that only math-verify decides. No pair occurs twice.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from eval.grading.open_answers import OpenAnswerGrader
from eval.grading.pool import MathVerifyPool, PoolSettings

Comparison = Callable[[Sequence[tuple[str, str]]], list[bool]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Pairs of open answers compared in a second.")
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--alone", type=int, default=200, help="pairs given to math-verify alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--algebra", type=float, default=0.02, help="share that only math-verify decides")
    options = parser.parse_args()
    rng = random.Random(0)
    pairs = [pair(rng, number, options.algebra) for number in range(options.pairs)]
    settings = PoolSettings(
        workers=options.workers, seconds_per_pair=1.0, megabytes_per_worker=2048, pairs_per_process=500
    )
    print(f"{len(pairs)} pairs, {options.algebra:.0%} of them algebra, {options.workers} workers")
    with OpenAnswerGrader(settings) as grader:
        grader.equal([("a+b", "b+a"), ("a+c", "c+a")])  # starts the workers
        started = grader.pool.counts.compared
        rates = measured("open-answer grader", grader.equal, pairs, grader.pool.process_ids)
        counts = grader.pool.counts
    compared = counts.compared - started
    print(f"{'':20s}{compared} by math-verify, {counts.timed_out} timed out, {counts.lost} lost")
    with MathVerifyPool(settings) as pool:
        pool.equal([("$a+b$", "$b+a$"), ("$a+c$", "$c+a$")])
        boxed = [(f"\\boxed{{{gold}}}", f"\\boxed{{{answer}}}") for gold, answer in pairs[: options.alone]]
        alone = measured("math-verify alone", pool.equal, boxed, pool.process_ids)
    ratios = [rate / other for rate, other in zip(rates, alone, strict=True)]
    print(f"{'':20s}{ratios[0]:.1f} times as many, {ratios[1]:.1f} times by processor time")


def measured(
    name: str, equal: Comparison, pairs: Sequence[tuple[str, str]], workers: list[int]
) -> list[float]:
    """Pairs per wall second, and per processor second of this process and the workers."""
    wall, cpu = time.perf_counter(), processor_seconds(workers)
    verdicts = equal(pairs)
    wall, cpu = time.perf_counter() - wall, processor_seconds(workers) - cpu
    rates = [len(pairs) / wall, len(pairs) / cpu]
    equal_share = f"{sum(verdicts)} of {len(pairs)} equal"
    print(f"{name:20s}{rates[0]:8.0f} pairs/s {rates[1]:8.0f} pairs/CPU-s   {equal_share}")
    return rates


def processor_seconds(workers: list[int]) -> float:
    """What this process, the workers and their children, ended ones included, have used."""
    total = time.process_time()
    for pid in workers:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each, fields in ((pid, slice(11, 15)), *((int(child), slice(11, 13)) for child in children)):
            stat = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, stat[fields])) / os.sysconf("SC_CLK_TCK")
    return total


def pair(rng: random.Random, number: int, algebra: float) -> tuple[str, str]:
    """The `number`-th (gold, answer); half of the answers are right."""
    value = number + 2
    other = value if rng.random() < 0.5 else value + 1
    if rng.random() < algebra:
        return f"(x+{value})(x-1)", f"(x-1)({other}+x)"
    forms = [
        (f"{value}", f"{other}.0"),
        (f"{value}°", f"{other}"),
        (f"{value}cm", f"{other} \\text{{ cm}}"),
        (f"\\frac{{{value}}}{{7}}", f"{other}/7"),
        (f"{value}√{{3}}", f"{other}\\sqrt{{3}}"),
        (f"\\sqrt{{{value}}}", f"√{other}"),
        (f"{value}\\pi", f"{other}π"),
        (f"({value}, -1)", f"({other},-1)"),
        (f"{value}\\%", f"{other}%"),
        (f"{value}", f"C. {other}"),
        (f"{1000 * value:,}", f"{1000 * other}"),
        (f"x={value}", f"{other}"),
    ]
    return rng.choice(forms)


if __name__ == "__main__":
    main()
