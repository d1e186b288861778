"""A step's trajectories with all that is known of them, for whoever wants to keep them."""

from __future__ import annotations

from dataclasses import dataclass

from fastrl.rollouts import BoolArray, FloatArray, Rollouts


@dataclass(frozen=True)
class RolloutRecord:
    """The N accepted trajectories of a step.

    advantages: (N,), those of the full groups. kept: (N,) True where the trajectory was trained on. reason: N
    strings, why it was not (the selector's reason, or "trimmed" by alignment); "" where it was.
    """

    rollouts: Rollouts
    responses: tuple[str, ...]
    accuracy: FloatArray
    format: FloatArray
    advantages: FloatArray
    kept: BoolArray
    reason: tuple[str, ...]


def reasons(kept: BoolArray, selector_reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Why each trajectory was not trained on, "" where it was; alignment trims what the selector kept."""
    return tuple(
        "" if trained else why or "trimmed" for trained, why in zip(kept, selector_reasons, strict=True)
    )
