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

from eval.datasets.laptop_geometry.families import FAMILIES
from eval.datasets.laptop_geometry.out_of_domain_families import OUT_OF_DOMAIN_FAMILIES
from eval.datasets.laptop_geometry.problem import Problem
from eval.datasets.settings import LaptopGeometrySplits

Pools = dict[str, list[Problem]]
"""Problems by family."""

IN_DOMAIN_SPLITS = ("train", "selection", "validation")
SPLITS = (*IN_DOMAIN_SPLITS, "out_of_domain")


def split_problems(splits: LaptopGeometrySplits, split: str) -> list[Problem]:
    """The problems of one split: families equally often while they last, each problem at most once.

    Raises ValueError for an unknown split, and when fewer problems exist than `splits.sizes` asks for.
    """
    if split not in SPLITS:
        raise ValueError(f"laptop_geometry has no split {split!r}; it has {', '.join(SPLITS)}")
    pools = (_in_domain(splits) if split in IN_DOMAIN_SPLITS else _out_of_domain(splits))[split]
    size: int = getattr(splits.sizes, split)
    available = sum(map(len, pools.values()))
    if size > available:
        raise ValueError(
            f"split {split!r} of laptop_geometry has {available} problems at seed {splits.seed}, "
            f"fewer than splits.sizes.{split} = {size}; lower the size or change splits.number_shares"
        )
    return _draw(pools, size, random.Random(f"{splits.seed}/{split}"))


def warmup_pools(splits: LaptopGeometrySplits) -> tuple[Pools, Pools]:
    """(in-domain, out-of-domain) problems that the warm-up of a policy may use."""
    in_domain = {family: list(problems()) for family, problems in FAMILIES.items()}
    return in_domain, _out_of_domain(splits)["warm-up"]


def _in_domain(splits: LaptopGeometrySplits) -> dict[str, Pools]:
    shares = {"validation": splits.number_shares.validation, "selection": splits.number_shares.selection}
    return _deal(FAMILIES, shares, rest="train", seed=splits.seed)


def _out_of_domain(splits: LaptopGeometrySplits) -> dict[str, Pools]:
    shares = {"out_of_domain": splits.number_shares.out_of_domain}
    return _deal(OUT_OF_DOMAIN_FAMILIES, shares, rest="warm-up", seed=splits.seed)


def _deal(
    families: Mapping[str, Callable[[], Iterator[Problem]]], shares: Mapping[str, float], rest: str, seed: int
) -> dict[str, Pools]:
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
