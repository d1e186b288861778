"""Which problems go where.

Splits differ in their numbers, not only in their wording: a family's exercises (its sets of given numbers)
are dealt out among train, selection and validation, so that no exercise is in two of them. Those of an
out-of-domain family are dealt out between the out-of-domain split and the warm-up.

The warm-up of the policy draws on every exercise of the in-domain families, those of validation included: the
validation split measures what reinforcement learning on other numbers adds. Of the out-of-domain families the
warm-up sees only exercises that the out-of-domain split leaves out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from eval.datasets.laptop_geometry.families import FAMILIES
from eval.datasets.laptop_geometry.out_of_domain_families import OUT_OF_DOMAIN_FAMILIES
from eval.datasets.laptop_geometry.problem import Problem
from eval.datasets.settings import LaptopGeometrySplits

Pools = dict[str, list[Problem]]
"""Problems by family."""

Families = Mapping[str, Callable[[], Iterator[Problem]]]
"""What lists all problems of a family, by its name."""

IN_DOMAIN_SPLITS = ("train", "selection", "validation")
SPLITS = (*IN_DOMAIN_SPLITS, "out_of_domain")


@dataclass(frozen=True)
class ProblemSet:
    """A data set's families. name: of the data set, for messages."""

    name: str
    in_domain: Families
    out_of_domain: Families


TEXTS = ProblemSet("laptop_geometry", FAMILIES, OUT_OF_DOMAIN_FAMILIES)


def split_problems(
    splits: LaptopGeometrySplits, split: str, problem_set: ProblemSet = TEXTS
) -> list[Problem]:
    """The problems of one split: families equally often while they last, each problem at most once.

    Raises ValueError for an unknown split, and when fewer problems exist than `splits.sizes` asks for.
    """
    if split not in SPLITS:
        raise ValueError(f"{problem_set.name} has no split {split!r}; it has {', '.join(SPLITS)}")
    dealt = (_in_domain if split in IN_DOMAIN_SPLITS else _out_of_domain)(splits, problem_set)
    pools = dealt[split]
    size: int = getattr(splits.sizes, split)
    available = sum(map(len, pools.values()))
    if size > available:
        raise ValueError(
            f"split {split!r} of {problem_set.name} has {available} problems at seed {splits.seed}, "
            f"fewer than splits.sizes.{split} = {size}; lower the size or change splits.number_shares"
        )
    return _draw(pools, size, random.Random(f"{splits.seed}/{split}"))


def warmup_pools(splits: LaptopGeometrySplits, problem_set: ProblemSet = TEXTS) -> tuple[Pools, Pools]:
    """(in-domain, out-of-domain) problems that the warm-up of a policy may use."""
    in_domain = {family: list(problems()) for family, problems in problem_set.in_domain.items()}
    return in_domain, _out_of_domain(splits, problem_set)["warm-up"]


def _in_domain(splits: LaptopGeometrySplits, problem_set: ProblemSet) -> dict[str, Pools]:
    shares = {"validation": splits.number_shares.validation, "selection": splits.number_shares.selection}
    return _deal(problem_set.in_domain, shares, rest="train", seed=splits.seed)


def _out_of_domain(splits: LaptopGeometrySplits, problem_set: ProblemSet) -> dict[str, Pools]:
    shares = {"out_of_domain": splits.number_shares.out_of_domain}
    return _deal(problem_set.out_of_domain, shares, rest="warm-up", seed=splits.seed)


def _deal(families: Families, shares: Mapping[str, float], rest: str, seed: int) -> dict[str, Pools]:
    """Deal out each family's exercises: `shares` to the named pools, at least one each, others to `rest`."""
    dealt: dict[str, Pools] = {name: {} for name in (*shares, rest)}
    for family, problems in families.items():
        by_exercise: dict[tuple[int, ...], list[Problem]] = {}
        for problem in problems():
            by_exercise.setdefault(problem.numbers, []).append(problem)
        exercises = sorted(by_exercise)
        random.Random(f"{seed}/{family}").shuffle(exercises)
        total = len(exercises)
        for name, share in shares.items():
            count = max(1, round(share * total))
            taken, exercises = exercises[:count], exercises[count:]
            dealt[name][family] = [problem for numbers in taken for problem in by_exercise[numbers]]
        dealt[rest][family] = [problem for numbers in exercises for problem in by_exercise[numbers]]
    return dealt


def _draw(pools: Pools, size: int, rng: random.Random) -> list[Problem]:
    left = {family: rng.sample(problems, len(problems)) for family, problems in pools.items() if problems}
    drawn: list[Problem] = []
    while len(drawn) < size:
        family = rng.choice(list(left))
        drawn.append(left[family].pop())
        if not left[family]:
            del left[family]
    return drawn
