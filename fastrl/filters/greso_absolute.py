"""GRESO with the draw sizes of its official code, which are numbers of questions."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.filters.greso import GresoRule
from fastrl.schedules.base import State


@dataclass(frozen=True)
class GresoAbsolute(GresoRule):
    """`GresoRule` as the official scripts set it for steps of 256 questions.

    A step first draws `draw_questions`; a refill draws missing / (1 - z) * refill_margin, rounded down, but
    no more than `draw_questions` and no fewer than `least_questions`; always at least what is missing.

    draw_questions: 384 for 256 groups in the official scripts (192 in one). least_questions: 64 in its code.

    Two things differ: the official code counts a draw after its skips, here it is before them; and it ends a
    step after a draw whose estimate fitted `draw_questions`, even if that did not fill the step, where this
    goes on up to `max_draws`.
    """

    draw_questions: int
    least_questions: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.least_questions <= self.draw_questions:
            raise ValueError(
                f"least_questions={self.least_questions} and draw_questions={self.draw_questions}; "
                "1 <= least_questions <= draw_questions is needed"
            )

    def next_draw(self, state: State, missing: int) -> int:
        if state["constant"] is None:
            return max(self.draw_questions, missing)
        wanted = min(self._estimate(state, missing), self.draw_questions)
        return max(int(wanted), self.least_questions, missing)
