"""We-Math's official scores: one-step accuracies, four-dimensional metrics, domains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eval.protocols.base import BenchmarkQuestion

IG_WEIGHT = 0.5


@dataclass(frozen=True)
class GroupCounts:
    """Groups by what their answers show; their sum is the number of groups, strictly and loosely.

    ik: insufficient knowledge. ig: inadequate generalization. cm: complete mastery. rm: rote memorization.
    """

    ik: int
    ig: int
    cm: int
    rm: int

    def metrics(self, name: str) -> dict[str, float | int]:
        """Score and rates, in [0, 1]: `(groups - 0.5 IG - RM - IK) / groups`; RM's rate is of CM + RM."""
        groups, mastered = self.ik + self.ig + self.cm + self.rm, self.cm + self.rm
        return {
            f"score_{name}": (groups - IG_WEIGHT * self.ig - self.rm - self.ik) / groups,
            f"cm_rate_{name}": self.cm / groups,
            f"rm_rate_{name}": self.rm / mastered if mastered else 0.0,
            f"cm_{name}": self.cm,
            f"rm_{name}": self.rm,
        }


@dataclass(frozen=True)
class Group:
    """Verdicts of one problem: those of its sub-steps, and of the composite question made of them."""

    sub_steps: tuple[bool, ...]
    composite: bool


def wemath_metrics(questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]) -> dict[str, float | int]:
    """S1, S2, S3, four-dimensional metrics over complete groups, and domain scores.

    S1: accuracy of sub-steps; S2, S3: of composites of two and three. A domain's score is the mean over its
    concepts of the accuracy of their sub-steps. What there are no questions for is left out.
    """
    found = _step_accuracies(questions, correct)
    groups = complete_groups(questions, correct)
    if groups:
        strict, loose = counts(groups, strict=True), counts(groups, strict=False)
        shared: dict[str, float | int] = {
            "groups": len(groups),
            "ik": strict.ik,
            "ig": strict.ig,
            "ik_rate": strict.ik / len(groups),
            "ig_rate": strict.ig / len(groups),
        }
        found |= shared | strict.metrics("strict") | loose.metrics("loose")
    return found | _domain_scores(questions, correct)


def counts(groups: Sequence[Group], strict: bool) -> GroupCounts:
    """Groups in the four classes.

    A right composite is mastered when all (strict) or any (loose) sub-steps are right, else memorized.
    """
    solved = [group for group in groups if group.composite]
    missed = [group for group in groups if not group.composite]
    cm = sum(all(group.sub_steps) if strict else any(group.sub_steps) for group in solved)
    ig = sum(all(group.sub_steps) for group in missed)
    return GroupCounts(ik=len(missed) - ig, ig=ig, cm=cm, rm=len(solved) - cm)


def complete_groups(questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]) -> list[Group]:
    """The groups all of whose questions are there."""
    sub_steps, composites, sizes = defaultdict[str, list[bool]](list), dict[str, bool](), dict[str, int]()
    for question, right in zip(questions, correct, strict=True):
        name = question.details["group"]
        sizes[name] = question.details["sub_steps"]
        if question.details["composite"]:
            composites[name] = right
        else:
            sub_steps[name].append(right)
    return [
        Group(tuple(sub_steps[name]), composites[name])
        for name, size in sizes.items()
        if name in composites and len(sub_steps[name]) == size
    ]


def _step_accuracies(
    questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
) -> dict[str, float | int]:
    by_step = defaultdict[str, list[bool]](list)
    for question, right in zip(questions, correct, strict=True):
        by_step[question.labels["step"][0]].append(right)
    return {f"s{step}": fmean(verdicts) for step, verdicts in sorted(by_step.items())}


def _domain_scores(questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]) -> dict[str, float | int]:
    concepts = defaultdict[str, dict[str, list[bool]]](dict)
    for question, right in zip(questions, correct, strict=True):
        for domain in question.labels.get("domain", ()):
            concepts[domain].setdefault(question.details["concept"], []).append(right)
    return {
        f"domain {domain}": fmean(fmean(verdicts) for verdicts in of_concepts.values())
        for domain, of_concepts in sorted(concepts.items())
    }
