"""Settings of selectors that keep a number of each group and compute advantages from the kept alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeptSubset:
    """keep: at least 1; a group that lost trajectories keeps what it has, up to this number.

    std_normalise, epsilon: the advantages of the kept, see `fastrl.advantages.group_advantages`; as the
    objective has them, because a selector does not see the objective.
    """

    keep: int
    std_normalise: bool
    epsilon: float

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"keep={self.keep}; at least 1 trajectory of a group must be kept")
        if self.epsilon < 0:
            raise ValueError(f"epsilon={self.epsilon}; it is added to a deviation, so it must be at least 0")

    def problem_with(self, n: int) -> str | None:
        return None if self.keep <= n else f"keep={self.keep} of {n}; choose 1 to {n}, or sample more"
