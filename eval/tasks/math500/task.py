"""Functions of the lm-eval task of MATH-500."""

from __future__ import annotations

from eval.protocols.math_competition import MathCompetition
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(MathCompetition())

load = _TASK.load
process_results = _TASK.process_results
