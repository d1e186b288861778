"""Correlation of two similarities over pairs of trajectories, with intervals that resample questions.

Pairs of one question share trajectories, so they are no independent draws; questions are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics import CONFIDENCE, LEAST_SEEDS, Estimate


@dataclass(frozen=True)
class Pairs:
    """M pairs of trajectories of equal advantage.

    question: (M,) int64, equal for pairs of one question. jaccard, cosine: (M,) float64. duplicate: (M,)
    bool, the same response twice. correct: (M,) 1 both correct, 0 both wrong, NaN where
    accuracies differ or are not known.
    """

    question: NDArray[np.int64]
    jaccard: NDArray[np.float64]
    cosine: NDArray[np.float64]
    duplicate: NDArray[np.bool_]
    correct: NDArray[np.float64]

    def where(self, chosen: NDArray[np.bool_]) -> Pairs:
        return Pairs(
            self.question[chosen],
            self.jaccard[chosen],
            self.cosine[chosen],
            self.duplicate[chosen],
            self.correct[chosen],
        )

    def __len__(self) -> int:
        return len(self.question)


@dataclass(frozen=True)
class Correlation:
    """pearson, spearman: None where one of the similarities does not vary, or with fewer than three pairs.
    Their n counts questions."""

    pairs: int
    questions: int
    pearson: Estimate | None
    spearman: Estimate | None


def subsets(pairs: Pairs) -> Mapping[str, Pairs]:
    """The pairs in whole, without exact duplicates, and both of each correctness; empty ones left out."""
    distinct = ~pairs.duplicate
    everyone = np.ones(len(pairs), dtype=bool)
    correct, wrong = pairs.correct == 1, pairs.correct == 0
    chosen = {
        "all": everyone,
        "all, without duplicates": distinct,
        "both correct": correct,
        "both correct, without duplicates": correct & distinct,
        "both wrong": wrong,
        "both wrong, without duplicates": wrong & distinct,
    }
    return {name: pairs.where(inside) for name, inside in chosen.items() if inside.any()}


def correlate(pairs: Pairs, resamples: int, seed: int) -> Correlation:
    """Pearson's and Spearman's correlation of Jaccard similarity and gradient cosine.

    The 95 % intervals are percentiles over `resamples` draws of questions with replacement; a draw
    without any variation is left out. None below three questions.
    """
    labels, index = np.unique(pairs.question, return_inverse=True)
    questions = len(labels)
    ranks = _ranks(pairs.jaccard), _ranks(pairs.cosine)
    point = _pearson(pairs.jaccard, pairs.cosine), _pearson(*ranks)
    drawn: list[tuple[float, float]] = []
    if questions >= LEAST_SEEDS and not np.isnan(point).any():
        order = np.argsort(index, kind="stable")
        edges = np.searchsorted(index[order], np.arange(questions + 1))
        rng = np.random.default_rng(seed)
        for _ in range(resamples):
            chosen = rng.integers(0, questions, questions)
            rows = order[np.concatenate([np.arange(edges[q], edges[q + 1]) for q in chosen])]
            x, y = pairs.jaccard[rows], pairs.cosine[rows]
            drawn.append((_pearson(x, y), _pearson(_ranks(x), _ranks(y))))
    return Correlation(
        len(pairs),
        questions,
        _estimate(point[0], questions, [pearson for pearson, _ in drawn]),
        _estimate(point[1], questions, [spearman for _, spearman in drawn]),
    )


def _estimate(value: float, questions: int, drawn: list[float]) -> Estimate | None:
    if np.isnan(value):
        return None
    finite = [number for number in drawn if not np.isnan(number)]
    if not finite:
        return Estimate(value, questions, None)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(finite, [tail, 1 - tail])
    return Estimate(value, questions, (float(low), float(high)))


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """NaN for fewer than three pairs, or where x or y is constant."""
    if len(x) < 3 or x.min() == x.max() or y.min() == y.max():
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / np.sqrt((x @ x) * (y @ y)))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[index].astype(np.float64)
