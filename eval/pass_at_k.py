"""pass@k, avg@k and maj@k of sampled answers, and intervals of their means over questions.

The three take one row per question and return one value per question; a benchmark's score is the mean.
"""

from __future__ import annotations

import numpy as np

from fastrl.rollouts import BoolArray, FloatArray, IntArray


def pass_at_k(n_correct: IntArray, n: int, k: int) -> FloatArray:
    """The probability that at least one of k answers, drawn from the n without replacement, is right.

    The unbiased estimator 1 - C(n - c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374, section 2.1), as a
    product, so that no binomial overflows.

    n_correct: (Q,) int, right answers among the n of each question. Returns (Q,) float64.
    Raises ValueError when k is not in 1..n or a count is not in 0..n.
    """
    _check_k(n, k)
    counts = np.asarray(n_correct)
    if counts.size and (counts.min() < 0 or counts.max() > n):
        raise ValueError(f"counts of right answers must lie in 0..{n}, got {counts.min()}..{counts.max()}")
    drawn = np.arange(k)
    wrong_left: FloatArray = np.maximum(n - counts[:, None] - drawn, 0) / (n - drawn)
    none_right: FloatArray = np.prod(wrong_left, axis=1)
    return 1.0 - none_right


def avg_at_k(correct: BoolArray, k: int) -> FloatArray:
    """The share of right answers among the first k samples.

    correct: (Q, n) bool. Returns (Q,) float64. Raises ValueError when k is not in 1..n.
    """
    _check_k(correct.shape[1], k)
    share: FloatArray = correct[:, :k].mean(axis=1, dtype=np.float64)
    return share


def maj_at_k(answers: IntArray, correct: BoolArray, k: int) -> FloatArray:
    """Whether the most frequent answer of the first k samples is right.

    Right answers vote together however they are written; wrong ones vote by their code; a sample without an
    answer does not vote. A tie is shared evenly among the tied answers, so that the samples' order does not
    matter. A question where nobody votes scores 0.

    answers: (Q, n) int, equal codes for equal answers, -1 for none; correct: (Q, n) bool.
    Returns (Q,) float64 in [0, 1]. Raises ValueError when k is not in 1..n or a right sample has no answer.
    """
    _check_k(correct.shape[1], k)
    if np.any(correct & (answers < 0)):
        raise ValueError("a sample is marked right, but has no answer (code -1)")
    right = correct[:, :k]
    codes = np.where(right, answers.max(initial=0) + 1, answers[:, :k])
    votes = codes >= 0
    supporters = ((codes[:, :, None] == codes[:, None, :]) & votes[:, :, None]).sum(axis=2)
    leading = votes & (supporters == supporters.max(axis=1, keepdims=True))
    share: FloatArray = (leading & right).sum(axis=1) / np.maximum(leading.sum(axis=1), 1)
    return share


def question_intervals(
    values: FloatArray, level: float, resamples: int, generator: np.random.Generator
) -> FloatArray:
    """Percentile-bootstrap intervals of means over questions: what another draw of questions would give.

    They say nothing about other training seeds. All metrics see the same resampled questions.

    values: (Q, M) float, M metrics of each question, Q >= 1; level in (0, 1).
    Returns (M, 2) float64: low and high of each metric.
    Raises ValueError for no question, a level outside (0, 1) or no resample.
    """
    n_questions = len(values)
    if not n_questions:
        raise ValueError("an interval needs at least one question, got none")
    if not 0.0 < level < 1.0 or resamples < 1:
        raise ValueError(
            f"need 0 < level < 1 and resamples >= 1, got level {level} and resamples {resamples}"
        )
    times_drawn = generator.multinomial(n_questions, np.full(n_questions, 1 / n_questions), size=resamples)
    means = times_drawn @ values / n_questions
    bounds: FloatArray = np.quantile(means, [(1.0 - level) / 2, (1.0 + level) / 2], axis=0).T
    return bounds


def _check_k(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1..{n}, the number of samples per question; got k = {k}")
