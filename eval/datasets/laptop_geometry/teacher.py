"""A noisy teacher: warm-up responses of several styles, often wrong, that leave room for improvement."""

from __future__ import annotations

import random
from dataclasses import dataclass

from eval.datasets.laptop_geometry.problem import Problem, Solution

OPENINGS = ("First, ", "We know: ", "Note that ", "Let us think. ")
LINKS = (" Then ", " Next, ", " So ", " Hence ")
CONCLUSIONS = ("The answer is {}.", "Therefore {}.", "Thus we get {}.", "{}")


@dataclass(frozen=True)
class TeacherShares:
    """How often the teacher does what, each in [0, 1].

    wrong: it makes the problem's typical mistake. direct: it states the answer without reasoning.
    short: it writes the equations alone. The rest of the responses spell out the reasoning.
    without_think: reasoning stands outside <think> tags. without_box: the answer is not in \\boxed{}.
    """

    wrong: float
    direct: float
    short: float
    without_think: float
    without_box: float

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"teacher share {name} = {share} is not in [0, 1]")
        if self.direct + self.short > 1.0:
            raise ValueError(
                f"teacher shares direct = {self.direct} and short = {self.short} sum to more than 1; "
                "the rest of the responses is the long style, so lower one of them"
            )


def teacher_response(problem: Problem, shares: TeacherShares, rng: random.Random) -> str:
    """One response to `problem`; all randomness comes from `rng`."""
    solution = problem.mistake if rng.random() < shares.wrong else problem.solution
    style = rng.random()
    answer = str(solution.result) if rng.random() < shares.without_box else f"\\boxed{{{solution.result}}}"
    if style < shares.direct:
        return f"Answer: {answer}"
    if style < shares.direct + shares.short:
        reasoning = ", ".join(solution.equations)
    else:
        reasoning = _spelled_out(solution, rng)
    if rng.random() >= shares.without_think:
        reasoning = f"<think>{reasoning}</think>"
    return f"{reasoning} {rng.choice(CONCLUSIONS).format(answer)}"


def _spelled_out(solution: Solution, rng: random.Random) -> str:
    steps = "".join(f"{rng.choice(LINKS)}{equation}." for equation in solution.equations)
    return f"{rng.choice(OPENINGS)}{solution.reason}{steps}"
