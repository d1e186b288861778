"""What both laptop policies ask of the problems that they are warmed up on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eval.datasets.laptop_geometry.problem import Problem
from experiments.policies.settings import LaptopLlama, LaptopVision


def check_warm_up_set(settings: LaptopLlama | LaptopVision, dataset_config: Mapping[str, Any]) -> None:
    """ValueError for a data set that the policy does not know how to warm up on."""
    if dataset_config["source"] != settings.warm_up_set:
        raise ValueError(
            f"model {settings.name!r} is warmed up on {settings.warm_up_set} and knows nothing of data set "
            f"{dataset_config['name']!r}; choose dataset={settings.warm_up_set}, or a model with kind: hub"
        )


def written_numbers(problems: Iterable[Problem], shown: Callable[[Any], str]) -> set[int]:
    """Every number that occurs in what is shown of a problem, in its solution or in its mistake."""
    numbers: set[int] = set()
    for problem in problems:
        written = [shown(problem)]
        for solution in (problem.solution, problem.mistake):
            written += [solution.reason, *solution.equations, str(solution.result)]
        numbers.update(int(digits) for digits in re.findall(r"\d+", " ".join(written)))
    return numbers
