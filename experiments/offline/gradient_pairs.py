"""Pairs of trajectories of equal advantage: how alike their tokens are, and their policy gradients."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.errors import UserError
from experiments.offline.prompts import PromptOf
from fastrl.advantages import advantage_classes, zero_variance
from fastrl.engines.reference.gradient_similarity import (
    gradient_cosines,
    head_gradient_cosines,
    vocabulary_sketch,
)
from fastrl.engines.reference.logprobs import Sequences, join_sequences, make_scorer
from fastrl.engines.reference.policy import Policy
from fastrl.groups import check_finite
from fastrl.jaccard import jaccard_matrices
from fastrl.objectives.base import Objective
from fastrl.replay.recorded import RecordedStep
from fastrl.rollouts import FloatArray, Rollouts

Gradients = Literal["exact", "head"]


@dataclass(frozen=True)
class GroupSample:
    """One visit of a question: its G trajectories as `Rollouts` of one group, and their accuracy (G,)."""

    step: int
    rollouts: Rollouts
    accuracy: FloatArray


@dataclass(frozen=True)
class GradientPairs:
    """M pairs of equal advantage within a group; see `analysis.offline.correlation.Pairs` for the first five.

    groups, trajectories: that the pairs come from. skipped: pairs of which one has no gradient, such as an
    empty response. head_error: of a subsample the root mean square difference of the cosines by the output
    layer from the exact ones, and their correlation; None when all are exact.
    """

    question: NDArray[np.int64]
    jaccard: NDArray[np.float64]
    cosine: NDArray[np.float64]
    duplicate: NDArray[np.bool_]
    correct: NDArray[np.float64]
    groups: int
    trajectories: int
    skipped: int
    head_error: tuple[float, float] | None


def last_groups(
    steps: Iterable[RecordedStep], first: int | None, last: int | None, questions: int, seed: int
) -> tuple[list[GroupSample], int]:
    """At most `questions` groups of varying reward, of the newest steps within [first, last] that hold
    enough; a seeded choice where there are more. Also returns how many groups of constant reward were left
    out.

    One pass, which holds the newest steps only. ValueError for rewards that are not finite; UserError when
    nothing is left.
    """
    newest: deque[list[GroupSample]] = deque()
    constant: deque[int] = deque()
    for step in steps:
        if (first is not None and step.step < first) or (last is not None and step.step > last):
            continue
        check_finite(step.rollouts.rewards, step.rollouts.offsets, "rewards", step.rollouts.question_ids)
        flat = zero_variance(step.rollouts.rewards, step.rollouts.offsets)
        newest.append([_group(step, int(q)) for q in np.flatnonzero(~flat)])
        constant.append(int(flat.sum()))
        while sum(map(len, newest)) - len(newest[0]) >= questions:
            newest.popleft()
            constant.popleft()
    groups = [group for step_groups in newest for group in step_groups]
    if not groups:
        raise UserError(
            "No group of these steps has different rewards, so no trajectory has a policy gradient.",
            "--steps",
            "choose other steps, or another run",
        )
    if len(groups) > questions:
        chosen = np.sort(np.random.default_rng(seed).choice(len(groups), questions, replace=False))
        groups = [groups[i] for i in chosen]
    return groups, sum(constant)


def _group(step: RecordedStep, q: int) -> GroupSample:
    rollouts = step.rollouts
    start, stop = int(rollouts.offsets[q]), int(rollouts.offsets[q + 1])
    edges = rollouts.token_offsets[start : stop + 1]
    return GroupSample(
        step.step,
        Rollouts(
            (rollouts.question_ids[q],),
            np.array([0, stop - start]),
            rollouts.tokens[edges[0] : edges[-1]],
            edges - edges[0],
            rollouts.rewards[start:stop],
        ),
        step.accuracy[start:stop],
    )


def gradient_pairs(
    policy: Policy,
    prompt_of: PromptOf,
    groups: Sequence[GroupSample],
    *,
    objective: Objective,
    epsilon: float,
    temperature: float,
    gradients: Gradients,
    sketch_width: int,
    checked_groups: int,
    chunk: int,
    seed: int,
) -> GradientPairs:
    """All pairs of equal advantage (closer than `epsilon`) in each group.

    gradients: "exact" over all trained parameters, or "head", of the output layer in a sketch of
    `sketch_width` numbers; then the first `checked_groups` groups are computed both ways. chunk: gradients of
    a text policy at once. UserError for token ids that the model does not have.
    """
    scorer = make_scorer(policy.model, None if policy.vision is None else policy.vision.features)
    vocabulary = policy.model.get_input_embeddings().weight.shape[0]
    sketch = torch.empty(0)
    if gradients == "head":
        outputs = policy.model.get_output_embeddings().weight.shape[0]
        generator = torch.Generator().manual_seed(seed)
        sketch = vocabulary_sketch(outputs, sketch_width, generator).to(policy.device)
    numbers: dict[str, int] = {}
    parts: list[list[NDArray[np.float64]]] = []
    errors: list[NDArray[np.float64]] = []
    skipped = 0
    for at, group in enumerate(groups):
        rollouts = group.rollouts
        name = rollouts.question_ids[0]
        _check_group(group, vocabulary)
        sequences = join_sequences(
            [prompt_of(name)] * rollouts.n_trajectories,
            rollouts.tokens,
            rollouts.token_offsets,
            policy.pad_id,
            policy.device,
        )
        first, second = _equal_pairs(
            objective.advantages(rollouts.rewards, rollouts.offsets), rollouts, epsilon
        )
        if not len(first):
            continue
        if gradients == "exact":
            cosines = gradient_cosines(scorer, sequences, temperature, chunk)
        else:
            cosines = head_gradient_cosines(scorer, sequences, temperature, sketch)
        full = ~np.isnan(_at(cosines, first, second))
        skipped += int((~full).sum())
        first, second = first[full], second[full]
        if gradients == "head" and at < checked_groups:
            exact = gradient_cosines(scorer, sequences, temperature, chunk)
            errors.append(np.stack([_at(cosines, first, second), _at(exact, first, second)]))
        jaccard = next(jaccard_matrices(rollouts))
        number = numbers.setdefault(name, len(numbers))
        parts.append(
            [
                np.full(len(first), number),
                jaccard[first, second],
                _at(cosines, first, second),
                _duplicates(sequences, first, second),
                _correctness(group.accuracy, first, second),
            ]
        )
    if not parts:
        raise UserError(
            "No two trajectories of a group have the same advantage.",
            f"{len(groups)} groups",
            "continuous rewards rarely repeat: widen the classes with --epsilon",
        )
    question, jaccard_all, cosine, duplicate, correct = (
        np.concatenate([part[i] for part in parts]) for i in range(5)
    )
    return GradientPairs(
        question.astype(np.int64),
        jaccard_all,
        cosine,
        duplicate.astype(bool),
        correct,
        len(groups),
        sum(group.rollouts.n_trajectories for group in groups),
        skipped,
        _head_error(errors),
    )


def _check_group(group: GroupSample, vocabulary: int) -> None:
    largest = int(group.rollouts.tokens.max(initial=0))
    if largest >= vocabulary or int(group.rollouts.tokens.min(initial=0)) < 0:
        raise UserError(
            f"Step {group.step} holds the token id {largest}, but the model has {vocabulary} tokens.",
            "--model",
            "the rollouts were sampled by a model with another vocabulary: name that model",
        )


def _equal_pairs(
    advantages: FloatArray, rollouts: Rollouts, epsilon: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    classes = advantage_classes(advantages, rollouts.offsets, epsilon)
    first, second = np.triu_indices(len(classes), 1)
    equal = (classes[first] == classes[second]) & (np.abs(advantages[first]) >= epsilon)
    return first[equal], second[equal]


def _at(cosines: Tensor, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(cosines.numpy()[first, second], dtype=np.float64)


def _duplicates(
    sequences: Sequences, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    tokens = sequences.tokens.cpu().numpy()
    lengths = sequences.response_lengths.cpu().numpy()
    same = (tokens[first] == tokens[second]).all(1) & (lengths[first] == lengths[second])
    return np.asarray(same, dtype=np.float64)


def _correctness(
    accuracy: FloatArray, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    """1 both correct, 0 both wrong, NaN else."""
    a, b = accuracy[first], accuracy[second]
    return np.where((a == 1) & (b == 1), 1.0, np.where((a == 0) & (b == 0), 0.0, np.nan))


def _head_error(errors: Sequence[NDArray[np.float64]]) -> tuple[float, float] | None:
    if not errors:
        return None
    head, exact = np.concatenate(errors, axis=1)
    difference = float(np.sqrt(np.mean((head - exact) ** 2)))
    varies = len(head) > 2 and head.std() > 0 and exact.std() > 0
    return difference, float(np.corrcoef(head, exact)[0, 1]) if varies else float("nan")
