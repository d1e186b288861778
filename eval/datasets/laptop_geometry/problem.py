"""What a problem of the laptop data set is: its text, its solution and a mistake that is easily made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Solution:
    """Worked reasoning: the fact it rests on, the equations in order, and the number it ends with."""

    reason: str
    equations: tuple[str, ...]
    result: int


@dataclass(frozen=True)
class Problem:
    """A geometry word problem with a whole number as its answer.

    `given` are its numbers in the order of the text. `mistake` always ends with another number than
    `solution`.
    """

    family: str
    given: tuple[int, ...]
    text: str
    solution: Solution
    mistake: Solution

    @property
    def answer(self) -> int:
        return self.solution.result

    @property
    def numbers(self) -> tuple[int, ...]:
        """The given numbers, ascending: problems of a family that share them count as the same exercise."""
        return tuple(sorted(self.given))

    @property
    def exercise(self) -> tuple[str, tuple[int, ...]]:
        """(family, numbers): what the splits keep apart."""
        return self.family, self.numbers


def prompt(problem: Problem) -> str:
    """The text given to the policy."""
    return f"Q: {problem.text}\nA:"
