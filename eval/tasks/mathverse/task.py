"""Functions of the lm-eval tasks of MathVerse."""

from __future__ import annotations

from eval.protocols.mathverse import MathVerse
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(MathVerse())

load = _TASK.load
images = _TASK.images
process_results = _TASK.process_results
