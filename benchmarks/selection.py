"""How fast MDAP selects, against Python sets and the floor of reading the token ids once.

    python -m benchmarks.selection                                   # the whole table
    python -m benchmarks.selection --questions 32 --repeats 1        # a quick look

Every row is one batch: Zipf-distributed token ids, 60 % of them from a question's own few hundred words, and
a prefix that the trajectories of a question share. Times are medians of CPU seconds of this process on one
thread; what to compare are the ratios within a row. All selectors of a row must choose alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from fastrl.advantages import group_advantages
from fastrl.jaccard import Kernel
from fastrl.rollouts import FloatArray, Rollouts
from fastrl.selectors.mdap import Mdap

VOCABULARY = 152_000
TAU = 0.8
PREFIX = 64
GROUP_SIZES = (8, 16, 64, 256)
LENGTHS = (2048, 8192, 32768)


@dataclass(frozen=True)
class Row:
    """CPU seconds of one batch; numba and sets None where they were not run. peak: bytes allocated by numpy's
    selection, without the input."""

    questions: int
    group: int
    longest: int
    tokens: int
    floor: float
    sets: float | None
    numpy: float
    numba: float | None
    peak: int


def made_batch(questions: int, group: int, longest: int, seed: int) -> Rollouts:
    """Right-or-wrong groups with responses of a quarter of `longest` tokens up to all of it."""
    rng = np.random.default_rng(seed)
    n = questions * group
    lengths = rng.integers(longest // 4, longest + 1, n)
    edges = np.concatenate([[0], np.cumsum(lengths)])
    question = np.repeat(np.arange(n) // group, lengths)
    common = rng.permutation(VOCABULARY)[_zipf(rng, VOCABULARY, 1.05, len(question))]
    own = rng.integers(0, VOCABULARY, (questions, 400))[question, _zipf(rng, 400, 1.0, len(question))]
    tokens = np.where(rng.random(len(question)) < 0.6, own, common).astype(np.int32)
    for i, start in enumerate(edges[:-1].tolist()):
        first = int(edges[i // group * group])
        tokens[start : start + PREFIX] = tokens[first : first + PREFIX]
    right = rng.random((questions, group)) < rng.random((questions, 1))
    return Rollouts(
        question_ids=tuple(str(q) for q in range(questions)),
        offsets=np.arange(questions + 1) * group,
        tokens=tokens,
        token_offsets=edges,
        rewards=right.ravel().astype(np.float64),
    )


def selected_by_sets(rollouts: Rollouts, advantages: FloatArray) -> list[int]:
    """MDAP with `compare: seed` in plain Python, as a first version would have it."""
    exact = Fraction(repr(TAU))
    edges, kept = rollouts.token_offsets.tolist(), []
    for start, stop in pairwise(rollouts.offsets.tolist()):
        sets = [set(rollouts.tokens[a:b].tolist()) for a, b in pairwise(edges[start : stop + 1])]
        seeds: dict[float, set[int]] = {}
        for i in range(start, stop):
            seed = seeds.setdefault(round(float(advantages[i]), 4), sets[i - start])
            union = len(seed | sets[i - start])
            differing = union - len(seed & sets[i - start])
            if seed is sets[i - start] or differing * exact.denominator > union * exact.numerator:
                kept.append(i)
    return kept


def measured(questions: int, group: int, longest: int, repeats: int, with_sets: bool) -> Row:
    batch = made_batch(questions, group, longest, seed=0)
    advantages = group_advantages(batch.rewards, batch.offsets, True, 1e-6)

    def select(kernel: Kernel) -> list[int]:
        mdap = Mdap(TAU, "seed", 1e-4, "none", False, kernel)
        kept: list[int] = mdap.select(batch, advantages, np.random.default_rng(0)).kept.tolist()
        return kept

    def timed(work: Callable[[], object], times: int = repeats) -> float:
        return statistics.median(_cpu_seconds(work) for _ in range(times))

    tracemalloc.start()
    kept = select("numpy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numba = None
    if importlib.util.find_spec("numba") is not None:
        if select("numba") != kept:  # compiles, too
            raise RuntimeError("numba and numpy select differently")
        numba = timed(lambda: select("numba"))
    sets = None
    if with_sets:
        if selected_by_sets(batch, advantages) != kept:
            raise RuntimeError("numpy and Python sets select differently")
        sets = timed(lambda: selected_by_sets(batch, advantages), max(repeats // 2, 1))
    return Row(
        questions=questions,
        group=group,
        longest=longest,
        tokens=len(batch.tokens),
        floor=timed(lambda: int(batch.tokens.max())),
        sets=sets,
        numpy=timed(lambda: select("numpy")),
        numba=numba,
        peak=peak,
    )


def table(rows: Sequence[Row]) -> str:
    columns = "questions:9 G:4 longest:8 Mtokens:8 floor_ms:9 sets_ms:9 numpy_ms:9 numba_ms:9 sets/numpy:10"
    columns += " sets/numba:10 numpy/floor:11 numba/floor:11 peak_MB:8"
    lines = [" ".join(name.rjust(int(width)) for name, width in (c.split(":") for c in columns.split()))]
    for row in rows:
        lines.append(
            f"{row.questions:9d} {row.group:4d} {row.longest:8d} {row.tokens / 1e6:8.2f} {_ms(row.floor):>9} "
            f"{_ms(row.sets):>9} {_ms(row.numpy):>9} {_ms(row.numba):>9} {_ratio(row.sets, row.numpy):>10} "
            f"{_ratio(row.sets, row.numba):>10} {_ratio(row.numpy, row.floor):>11} "
            f"{_ratio(row.numba, row.floor):>11} {row.peak / 1e6:8.2f}"
        )
    bound = 4 * VOCABULARY / 1e6
    lines.append(f"vocabulary {VOCABULARY}: a table of 4 bytes an entry is {bound:.2f} MB")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=256, help="questions of the first row")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    rows = [measured(options.questions, 8, LENGTHS[0], options.repeats, with_sets=True)]
    # Growth, with about as many tokens in every row.
    for group in GROUP_SIZES[1:]:
        questions = max(options.questions * 8 // group, 1)
        rows.append(measured(questions, group, LENGTHS[0], options.repeats, with_sets=False))
    for longest in LENGTHS[1:]:
        questions = max(options.questions * LENGTHS[0] // longest, 1)
        rows.append(measured(questions, 8, longest, options.repeats, with_sets=False))
    print(table(rows))


def _zipf(rng: np.random.Generator, size: int, exponent: float, count: int) -> np.ndarray:
    """(count,) ranks from 0, drawn in proportion to 1 / (rank + 1) ** exponent."""
    cumulative = np.cumsum(1 / np.arange(1, size + 1) ** exponent)
    return np.searchsorted(cumulative / cumulative[-1], rng.random(count)).clip(max=size - 1)


def _cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.2f}"


def _ratio(one: float | None, other: float | None) -> str:
    return "-" if one is None or other is None else f"{one / other:.1f}x"


if __name__ == "__main__":
    main()
